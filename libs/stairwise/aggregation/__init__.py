"""Groups over windows that go by time: rows become partials of a slice once, and one stair answers every window.

    rows ──signature_rows──▶ registers (open slice) ──▶ slice_store ◀── cuts, aged_cuts, needs: where it is cut and
                                                        │           what it holds; slices, layer, slice_pages: how
  step_finding ── walk, sweep, walk_tables, running_sums: the partials behind each step (found_partials)
            │
         operator ──▶ stair ──stair_expansion──▶ one query's groups      level_steps: WEIGHTED BY, RECURRING

partials, group_rows   what aggregates keep, and group rows from it
landmark, frequent     groups of one query: landmark windows, APPROX_FREQUENT
"""
