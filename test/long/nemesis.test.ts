import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runNemesis } from '../nemesis/run.ts'
import { MODES } from '../nemesis/world.ts'
import { LONG, SEED } from '../runs.ts'

/**
 * Everything fails while everything is used: `npm run test:long -- nemesis`, for `NEMESIS_SECONDS` in all, in the modes that
 * `NEMESIS_MODES` names. `TEST_SEED` gives the same faults again.
 */

// In `npm run test:fixed` it shows that it works; in hours it looks for violations.
const SECONDS = Number(process.env.NEMESIS_SECONDS ?? (LONG ? 120 : 4))
const modes = process.env.NEMESIS_MODES?.split(',') ?? (LONG ? MODES : ['direct'])

for (const mode of MODES.filter((one) => modes.includes(one)))
  test(`${mode}: what was acknowledged is there, once, whatever failed`, async (t) => {
    const seconds = SECONDS / modes.length
    const found = await runNemesis({ mode, seconds, seed: SEED, say: (line) => t.diagnostic(line) })
    assert.deepEqual(found, [])
  })
