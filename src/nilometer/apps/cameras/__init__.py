"""The cameras of the papers' introduction: which objects pass all of them, one after the other?"""
