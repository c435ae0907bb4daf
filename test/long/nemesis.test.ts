import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runNemesis } from '../nemesis/run.ts'
import { MODES } from '../nemesis/world.ts'
import { LONG, SEED } from '../runs.ts'

/**
 * Faults in every part while every area is in use: `npm run test:long -- nemesis`. It runs for `NEMESIS_SECONDS` in total, in
 * the modes in `NEMESIS_MODES`. `TEST_SEED` repeats the faults.
 */

// `npm run test:fixed` only checks that the harness works; hours of it search for violations.
const SECONDS = Number(process.env.NEMESIS_SECONDS ?? (LONG ? 120 : 4))
const modes = process.env.NEMESIS_MODES?.split(',') ?? (LONG ? MODES : ['direct'])

for (const mode of MODES.filter((one) => modes.includes(one)))
  test(`${mode}: what was acknowledged is there, once, whatever failed`, async (t) => {
    const seconds = SECONDS / modes.length
    const found = await runNemesis({ mode, seconds, seed: SEED, say: (line) => t.diagnostic(line) })
    assert.deepEqual(found, [])
  })
