import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { Transaction } from '../../sql/db.ts'
import { noRows, sql } from '../../sql/db.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { enqueueJobs } from '../../sql/jobs/jobs.ts'
import { QUOTA_NAMES, type QuotaKind, readQuotas, requireQuota, setQuotas } from '../../sql/quotas/quotas.ts'
import { createReader } from '../../sql/reads/reader.ts'
import { DEFAULT_QUOTAS } from '../job-settings.ts'
import { buildJobSpec } from './ledger-help.ts'
import { newAccount, sharedDatabase } from './shared-database.ts'

/** Quotas count what an account has, and hold even if many transactions add rows in parallel. */

const { db, query, url } = await sharedDatabase()
const reader = createReader({ url, applicationName: 'test' })
after(() => reader.close())

/** Statements that add a row of each kind and remove it again. */
const QUOTA_STATEMENTS: Readonly<Record<QuotaKind, { add: string; remove: string; each?: number }>> = {
  documents: {
    add: `insert into document (owner_id, title, media_type, byte_size, sha256)
      values ($1, 't', 'text/plain', 1, sha256(gen_random_uuid()::text::bytea))`,
    remove: 'delete from document where owner_id = $1',
  },
  bytes: {
    add: `insert into document (owner_id, title, media_type, byte_size, sha256)
      values ($1, 't', 'text/plain', 1000, sha256(gen_random_uuid()::text::bytea))`,
    remove: 'delete from document where owner_id = $1',
    each: 1000,
  },
  pages: {
    add: `insert into document (owner_id, title, media_type, byte_size, sha256, page_count)
      values ($1, 't', 'text/plain', 1, sha256(gen_random_uuid()::text::bytea), 7)`,
    remove:
      'update document set deleted_at = now(), expires_at = now(), pruned_at = now() where owner_id = $1',
    each: 7,
  },
  organizations: {
    add: `insert into organization (name, slug, created_by) values ('n', 'o-' || gen_random_uuid(), $1)`,
    remove: 'update organization set deleted_at = now(), slug = null where created_by = $1',
  },
  keys: {
    add: `insert into api_key (id, account_id, name, digest, hint, scopes)
      values (gen_random_uuid(), $1, 'n', sha256(gen_random_uuid()::text::bytea), 'hint', '{jobs:read}')`,
    remove: 'delete from api_key where account_id = $1',
  },
  webhook_endpoints: {
    add: `insert into webhook_endpoint (secret, account_id, url, host, events) values ('aaaaaaaa.AAAA', $1, 'https://example.com/', 'example.com', '{job.done}')`,
    remove: 'update webhook_endpoint set deleted_at = now(), is_active = false where account_id = $1',
  },
  pending_deliveries: {
    add: `with endpoint as (
        insert into webhook_endpoint (secret, account_id, url, host, events) values ('aaaaaaaa.AAAA', $1, 'https://example.com/', 'example.com', '{job.done}') returning id)
      insert into webhook_delivery (endpoint_id, type, body) select id, 'job.done', '{}' from endpoint`,
    remove: `update webhook_delivery set status = 'failed', due_at = null, ended_at = now()
      where endpoint_id in (select id from webhook_endpoint where account_id = $1)`,
  },
  worker_queues: {
    add: `insert into worker_queue (name, account_id, created_by) values ('q' || left(gen_random_uuid()::text, 8), $1, $1)`,
    remove: 'delete from worker_queue where created_by = $1',
  },
  schedules: {
    add: `insert into schedule (id, owner_id, name, task_name, queue_type, args, every_seconds, time_zone, overlap, catch_up)
      values (gen_random_uuid(), $1, 'n', 't', 'q', '{}', 60, 'UTC', 'skip', 'none')`,
    remove: 'delete from schedule where owner_id = $1',
  },
  conversations: {
    add: `insert into ai_conversation (id, user_id, owner_id, title, provider, model)
      values (gen_random_uuid(), $1::text, $1::int, 't', 'p', 'm')`,
    remove: 'delete from ai_conversation where owner_id = $1',
  },
  collections: {
    add: `insert into rag_collection (name, owner_id, selection) values ('c-' || gen_random_uuid(), $1, '{}')`,
    remove: 'update rag_collection set deleted_at = now() where owner_id = $1',
  },
  speech_characters: {
    add: `insert into voice_preview (digest, owner_id, job_id, provider, model, voice, speed, text)
      values (sha256(gen_random_uuid()::text::bytea), $1, gen_random_uuid(), 'p', 'm', 'v', 1, 'Hello')`,
    remove: 'delete from voice_preview where owner_id = $1',
    each: 5,
  },
  waiting_jobs: {
    add: `insert into job (id, name, queue, owner_id, mailbox, payload, status, max_tries)
      values (gen_random_uuid(), 'test.noop', 'io', $1, 'm', '{}', 'available', 1)`,
    remove: `update job set status = 'done', finished_at = now() where owner_id = $1`,
  },
}

interface QuotaUse {
  readonly kind: QuotaKind
  readonly used: number
  readonly quota: number | null
  readonly own: number | null
  readonly setting: string
}

async function readUses(account: number, quotas = DEFAULT_QUOTAS): Promise<ReadonlyMap<QuotaKind, QuotaUse>> {
  const text = await reader.text(readQuotas, [account, QUOTA_NAMES, QUOTA_NAMES.map((kind) => quotas[kind])])
  return new Map((JSON.parse(text!) as { quotas: QuotaUse[] }).quotas.map((use) => [use.kind, use]))
}

for (const kind of QUOTA_NAMES) {
  const { add, remove, each = 1 } = QUOTA_STATEMENTS[kind]
  describe(kind, () => {
    test('counts the rows of its account, but none that are gone or of others', async () => {
      const [owner, other] = [await newAccount({ query }), await newAccount({ query })]
      await query(add, [other])
      for (let i = 0; i < 3; i++) await query(add, [owner])
      assert.equal((await readUses(owner)).get(kind)!.used, 3 * each)
      await query(remove, [owner])
      assert.equal((await readUses(owner)).get(kind)!.used, 0)
      assert.equal((await readUses(other)).get(kind)!.used, each)
    })

    test('holds when many transactions add rows concurrently', async () => {
      const owner = await newAccount({ query })
      const quotas = { ...DEFAULT_QUOTAS, [kind]: 4 * each }
      const addOne = async (tx: Transaction): Promise<void> => {
        await tx.run({ ...sql.type(noRows)`select`, sql: add, values: [owner] } as never)
        await requireQuota(tx, owner, [kind], quotas)
      }
      const added = await Promise.allSettled(Array.from({ length: 12 }, () => db.transaction(addOne)))
      const refused = added.flatMap((each) => (each.status === 'rejected' ? [each.reason.code] : []))
      assert.deepEqual(refused, new Array(8).fill(`quota.${kind}`))
      assert.equal((await readUses(owner)).get(kind)!.used, 4 * each)
    })
  })
}

test("an account's quota overrides the setting; null restores it, 0 means unlimited, and admins have none", async () => {
  const owner = await newAccount({ query })
  const keys = async () => (await readUses(owner, { ...DEFAULT_QUOTAS, keys: 5 })).get('keys')
  const shown = { kind: 'keys', used: 0, setting: 'QUOTA_KEYS' }
  assert.deepEqual(await keys(), { ...shown, quota: 5, own: null })
  await db.run(setQuotas(owner, { keys: 7, collections: 0 }))
  assert.deepEqual(await keys(), { ...shown, quota: 7, own: 7 })
  assert.equal((await readUses(owner)).get('collections')!.quota, null)
  await db.run(setQuotas(owner, { keys: null }))
  assert.deepEqual(await keys(), { ...shown, quota: 5, own: null })
  assert.equal((await readUses(owner)).get('collections')!.own, 0)
  await query(`update account set role = 'admin' where id = $1`, [owner])
  assert.equal((await keys())!.quota, null)
  await query(QUOTA_STATEMENTS.keys.add, [owner])
  await db.transaction((tx) => requireQuota(tx, owner, ['keys'], { ...DEFAULT_QUOTAS, keys: 1 }))
})

describe('jobs', () => {
  const jobs = (owner: number | null, count: number) =>
    Array.from({ length: count }, () => ({ ...buildJobSpec(), id: uuidv7(), owner_id: owner }))
  const countWaiting = async (owner: number) => (await readUses(owner)).get('waiting_jobs')!.used

  test('over the quota are rejected, also in a statement with jobs of others', async () => {
    const [owner, other] = [await newAccount({ query }), await newAccount({ query })]
    await db.any(enqueueJobs(jobs(owner, 3), 3))
    await assert.rejects(db.any(enqueueJobs([...jobs(other, 1), ...jobs(owner, 1)], 3)), {
      code: 'quota.waiting_jobs',
    })
    assert.deepEqual([await countWaiting(owner), await countWaiting(other)], [3, 0])
    await db.any(enqueueJobs([...jobs(other, 1), ...jobs(null, 9)], 3))
  })

  test("are rejected by an owner's quota below the setting, and unlimited if it is 0", async () => {
    const owner = await newAccount({ query })
    await db.run(setQuotas(owner, { waiting_jobs: 2 }))
    await assert.rejects(db.any(enqueueJobs(jobs(owner, 3), 1_000_000)), { code: 'quota.waiting_jobs' })
    await assert.rejects(db.any(enqueueJobs(jobs(owner, 3), 0)), { code: 'quota.waiting_jobs' })
    await db.any(enqueueJobs(jobs(owner, 2), 0))
    await db.run(setQuotas(owner, { waiting_jobs: 0 }))
    await db.any(enqueueJobs(jobs(owner, 3), 1))
    assert.equal(await countWaiting(owner), 5)
  })

  test('are limited to the quota in many concurrent requests', async () => {
    const owner = await newAccount({ query })
    const added = await Promise.allSettled(
      Array.from({ length: 12 }, () => db.any(enqueueJobs(jobs(owner, 2), 9))),
    )
    assert.equal(added.filter(({ status }) => status === 'fulfilled').length, 4)
    assert.equal(await countWaiting(owner), 8)
  })
})
