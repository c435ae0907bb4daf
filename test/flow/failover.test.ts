import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FailoverOptions, failOver } from '../failover.ts'
import { IS_LONG } from '../runs.ts'

/**
 * The primary dies, its standby is promoted, and every process recovers. `npm run bench -- failover` measures the time.
 */

const SYNCHRONOUS_CASES: readonly FailoverOptions[] = [
  { failure: 'killed' },
  ...(IS_LONG ? [{ failure: 'silent' as const }] : []),
]

for (const options of SYNCHRONOUS_CASES)
  test(`after a primary is ${options.failure}, no acknowledged work is lost or done twice`, async (t) => {
    const { recoveryMs, jobsEndedMs, acknowledged, ...broken } = await failOver(options)
    t.diagnostic(
      `written again after ${recoveryMs} ms, every job ended after ${jobsEndedMs}: ${JSON.stringify(acknowledged)}`,
    )
    assert.deepEqual(broken, { lost: [], duplicated: [], unfinished: [] })
  })

if (IS_LONG)
  test('after a failover to a lagging standby, only writes it lacked are lost, and all its jobs end', async (t) => {
    const {
      acknowledged,
      lost,
      duplicated,
      unfinished: unended,
    } = await failOver({ failure: 'killed', standbyLagMs: 2_000 })
    t.diagnostic(`${lost.length} lost, ${duplicated.length} done again of ${JSON.stringify(acknowledged)}`)
    assert.deepEqual(unended, [])
    const all = acknowledged.tags + acknowledged.tasks + acknowledged.mails
    assert.ok(lost.length > 0 && lost.length < all, `${lost.length} of ${all} lost`)
  })
