import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  ACCOUNT_DEPENDENTS,
  COLLECTION_DEPENDENTS,
  ORGANIZATION_DEPENDENTS,
  PURGE_BATCH,
  purgeRows,
} from '../../sql/retention/purge.ts'
import { vacuumAnalyze } from '../database.ts'
import { assertListed, findLine } from '../listed.ts'
import { assertWriteByIndex } from './plans-help.ts'
import { createPurgeDatabase, MORE_THAN_A_BATCH } from './purge-help.ts'

/** Tables that may have many rows are deleted in batches, and each deletion uses an index. */

const { query, other, account } = await createPurgeDatabase()
const id = await account(MORE_THAN_A_BATCH)
const organization = (await query(`select id from organization`))[0]!.id as number
await vacuumAnalyze(query)

describe('the lists of rows that are deleted in batches', () => {
  // Each of these tables has at most one row for an account, or one for each queue or schedule.
  const SINGLE = [
    'account_totp_account_id_fkey',
    'email_change_account_id_fkey',
    'account_quota_account_id_fkey',
    'ai_budget_account_id_fkey',
    'llm_current_chosen_by_fkey',
    'payment_customer_user_id_fkey',
    'queue_control_paused_by_fkey',
    'schedule_paused_by_fkey',
    'voice_settings_updated_by_fkey',
    // A quota limits them.
    'worker_queue_created_by_fkey',
  ]
  // The words of texts without an owner have the owner 0, so this table has no foreign key.
  const WITHOUT_KEY = ['search_word']
  // `account_leave` deletes these memberships, in its own batches.
  const LEFT = ['organization_member_user_id_fkey']

  for (const [table, constant, belongings, others] of [
    ['account', 'ACCOUNT_DEPENDENTS', ACCOUNT_DEPENDENTS, [...SINGLE, ...LEFT]],
    ['organization', 'ORGANIZATION_DEPENDENTS', ORGANIZATION_DEPENDENTS, []],
    ['rag_collection', 'COLLECTION_DEPENDENTS', COLLECTION_DEPENDENTS, []],
  ] as const)
    test(`have every foreign key to ${table}, with its action`, async () => {
      const keys = await query(
        `select conname as name, confdeltype = 'n' as clears from pg_constraint where confrelid = $1::regclass`,
        [table],
      )
      const listed = belongings
        .filter(({ table }) => !WITHOUT_KEY.includes(table))
        .map(({ table, referenceColumn, clearsReference = false }) => ({
          name: `${table}_${referenceColumn}_fkey`,
          clears: clearsReference,
        }))
      const key = ({ name, clears }: { name?: unknown; clears?: unknown }) =>
        `${name}${clears ? ' (clears)' : ''}`
      assertListed(keys.filter(({ name }) => !others.some((one) => one === name)).map(key), listed.map(key), [
        findLine('sql/retention/purge.ts', `export const ${constant}`),
        `${findLine('test/sql/purge-lists.test.ts', 'const SINGLE')} if there is at most one row`,
      ])
    })

  test('have every child table that may have many rows for one parent', async () => {
    // These tables have few rows per parent. A conversation has one score, a file at most two vectors, a document few
    // successors. An account has at most 100 API keys, a key four budgets, a job one reserved estimate.
    // A worker queue has at most 1000 tasks, which the small batch of queues allows for.
    // A transcription has a piece for each 25 MiB. A speech may have some thousand chunks, which its small batch allows for.
    const FEW = [
      ...['ai_sentiment', 'rag_vector', 'document', 'api_key', 'ai_budget', 'ai_budget_hold'],
      ...['voice_transcription_piece', 'voice_preview_chunk', 'worker_task'],
    ]
    for (const { table, clearsReference, children = {} } of [
      ...ACCOUNT_DEPENDENTS,
      ...ORGANIZATION_DEPENDENTS,
      ...COLLECTION_DEPENDENTS,
    ]) {
      if (clearsReference) continue
      const keys = await query(
        `select conrelid::regclass::text as name from pg_constraint where confrelid = $1::regclass and not conrelid::regclass::text = any($2)`,
        [table, FEW],
      )
      // `job_event_row` has no foreign key: a trigger deletes the events of jobs.
      const found = [...keys.map(({ name }) => name), ...(table === 'job' ? ['job_event_row'] : [])]
      assert.deepEqual(found.sort(), Object.keys(children).sort(), table)
    }
  })
})

describe('deletions by index', () => {
  // `assertWriteByIndex` runs seven batches, which are enough to delete child rows and then their parents.
  for (const [of, all] of [
    [organization, ORGANIZATION_DEPENDENTS],
    [id, ACCOUNT_DEPENDENTS],
  ] as const)
    for (const some of all)
      test(`${some.table} by ${some.referenceColumn}`, () =>
        assertWriteByIndex(other, () => purgeRows({ ...some, max: PURGE_BATCH }, of)))
})
