"""The cameras of the papers' introduction: which objects pass all of them, one after another?"""

from nilometer.extras import require_extras

require_extras("the cameras", "server")
