"""Pure functions on text: normalisation, extraction, numerals, tokenisers, reasoning."""
