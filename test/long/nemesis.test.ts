import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runNemesis } from '../nemesis/run.ts'
import { MODES } from '../nemesis/world.ts'
import { IS_LONG, SEED } from '../runs.ts'

/**
 * Injects faults into every part while simulated users work in every area: `npm run test:long -- nemesis`.
 * `NEMESIS_SECONDS` is the total duration and `NEMESIS_MODES` lists the modes. `TEST_SEED` repeats the faults.
 */

// `npm run test:fixed` only checks that the harness works. Finding violations takes hours.
const SECONDS = Number(process.env.NEMESIS_SECONDS ?? (IS_LONG ? 120 : 4))
const modes = process.env.NEMESIS_MODES?.split(',') ?? (IS_LONG ? MODES : ['direct'])

for (const mode of MODES.filter((one) => modes.includes(one)))
  test(`${mode}: acknowledged work exists exactly once after all faults`, async (t) => {
    const seconds = SECONDS / modes.length
    const found = await runNemesis({ mode, seconds, seed: SEED, say: (line) => t.diagnostic(line) })
    assert.deepEqual(found, [])
  })
