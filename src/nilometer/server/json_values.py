"""How the API writes values: as deliveries do."""

from nilometer.kernels.json_values import EXACT, columns_of, rows_of, unique_names, values_of

__all__ = ["EXACT", "columns_of", "rows_of", "unique_names", "values_of"]
