import assert from 'node:assert/strict'
import { test } from 'node:test'
import { counted, MOST_COUNTED, TOTAL } from '../../sql/totals.ts'
import { testDatabase } from '../database.ts'

const { query } = await testDatabase()

test('a total is exact as far as it is counted, and says so', async () => {
  for (const [there, total, exact] of [
    [0, 0, true],
    [MOST_COUNTED, MOST_COUNTED, true],
    [MOST_COUNTED + 1, MOST_COUNTED, false],
    [3 * MOST_COUNTED, MOST_COUNTED, false],
  ] as const) {
    const [row] = await query(
      `select json_build_object(${TOTAL}) as json from ${counted(`generate_series(1, ${there})`)} counted`,
    )
    assert.deepEqual(row!.json, { total, total_is_exact: exact })
  }
})
