import { randomBytes } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { readAccount, refreshSession } from '../../sql/accounts/accounts.ts'
import { deleteExpiredRefreshTokens } from '../../sql/accounts/sessions.ts'
import { connect } from '../../sql/connections/driver.ts'
import type { Query } from '../../sql/db.ts'
import {
  findDocumentContent,
  findSealedBlob,
  findUnreferencedBlobs,
  markAbandonedBlobs,
} from '../../sql/documents/blobs.ts'
import {
  addTag,
  deleteDocuments,
  findDeletedDocuments,
  findTrashedDigest,
  insertDocument,
  readDocument,
  readDocuments,
  readTaggedDocuments,
  readTags,
  readTrash,
  removeTag,
  restoreDocument,
} from '../../sql/documents/documents.ts'
import {
  cancelExtractions,
  countPages,
  listExtractedPages,
  listOwnedDocuments,
  readBytesPresence,
  readExtraction,
  readPage,
  readPages,
} from '../../sql/documents/pages.ts'
import { searchDocuments } from '../../sql/documents/search.ts'
import { claimKey, deleteExpiredIdempotencyKeys } from '../../sql/idempotency/idempotency.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { claimJobs, requeueDeliveries } from '../../sql/jobs/claims.ts'
import { readJobDetails } from '../../sql/jobs/details.ts'
import {
  readCurrentStates,
  readEndedJobIds,
  readEndedMemberIds,
  readEndedNamedIds,
  readEventsAfter,
  readLiveMemberIds,
  readVisibleState,
  readVisibleStates,
} from '../../sql/jobs/events.ts'
import {
  cancelJobs,
  enqueueJobs,
  fenceJob,
  finishJobs,
  readJob,
  refundInterruptions,
  rescueRunningJobs,
} from '../../sql/jobs/jobs.ts'
import { listRunningJobs, renewLease } from '../../sql/jobs/leases.ts'
import { readJobs, readLiveIds, readQueueDepths, readSortedJobs } from '../../sql/jobs/lists.ts'
import { listLostAttempts } from '../../sql/jobs/lost.ts'
import { findJobHistory, readMonitor } from '../../sql/jobs/monitor.ts'
import { deleteExpiredJobs, deleteUnusedRates } from '../../sql/jobs/prune.ts'
import { linkRetries, listRetries, lockJobsToRetry } from '../../sql/jobs/retry.ts'
import {
  countSelectedJobs,
  deleteEndedJobs,
  type JobSelection,
  listSelectedIds,
  readFailures,
  readFoundJobs,
} from '../../sql/jobs/search.ts'
import { reserveStart } from '../../sql/jobs/starts.ts'
import { readNamedQueues, readTaskResults } from '../../sql/jobs/tasks.ts'
import { createTestDatabase, vacuumAnalyze } from '../database.ts'
import { buildJobSpec, IDLE_LOAD, storeProgress } from './ledger-help.ts'
import { assertWriteByIndex, FORCED_MODES, planRead, testReads } from './plans-help.ts'

/** Frequent queries use an index, in tables of at least 1500 rows. */

const { url, query } = await createTestDatabase()
await query(
  `insert into account (email, password_hash) select 'a' || n || '@example.com', 'x' from generate_series(1, 1500) n`,
)
await query(
  `insert into job (id, name, queue, owner_id, mailbox, mailbox_limit, payload, status, max_tries, finished_at, seq, error_code, lease_id, key, batch_id)
   select ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'n', 'q', 1 + n % 199, 'actor:' || n, 1, '{}', status, 3,
     case when n > 600 then now() - n * interval '0.2 s' end, 3, case when status = 'failed' then 'internal' end,
     case when status = 'running' then '00000000-0000-0000-0000-000000000001'::uuid end,
     case when n % 5 = 0 then 'k ' || n % 50 end, case when n % 10 = 0 then ('00000000-0000-7000-8000-' || lpad(to_hex(n - n % 100), 12, '0'))::uuid end
   from (select n, case when n <= 100 then 'running' when n <= 600 then 'available'
     when n % 20 = 0 then 'failed' when n % 33 = 0 then 'cancelled' else 'done' end as status from generate_series(1, 25000) n) x`,
)
await query(
  `insert into job_event_row (job_id, seq, kind, data) select id, s, 'status', '{"status":"running"}' from job, generate_series(1, 3) s where ordinal <= 3000`,
)
await query(
  `insert into job_log (job_id, at, level, message, data) select id, now(), 'info', 'm', '{}' from job where ordinal <= 3000`,
)
await query(
  `insert into document (owner_id, title, media_type, byte_size, sha256, kind, tags) select case when n % 200 > 0 then n % 200 end,
     'Title ' || n, 'text/plain', 1, sha256(n::text::bytea), case n % 5 when 0 then 'invoice' else 'other' end,
     array['tag ' || n % 400, 'tag ' || n % 7]
   from generate_series(1, 2000) n`,
)
await query(
  `insert into document (owner_id, title, media_type, byte_size, sha256, deleted_at, expires_at)
   select case when n % 200 > 0 then n % 200 end, 'Trash ' || n, 'text/plain', 1, sha256(('trash ' || n)::bytea),
     now() - n * interval '1 s', now() + interval '1 h' from generate_series(1, 1000) n`,
)
await query(
  `insert into document_tag_count (owner_id, label, documents, superseded) select n % 200, 'tag ' || n, 1, 0 from generate_series(1, 3000) n`,
)
await query(`insert into document_page (document_id, page_number, status, method, text, job_id)
  select id, p, 'read', 'text_layer', 'text', gen_random_uuid() from document, generate_series(1, 2) p where id <= 1500`)
await query(
  `insert into blob (sha256, byte_size) select sha256(n::text::bytea), 1 from generate_series(1, 3000) n`,
)
await query(
  `insert into session (id, account_id) select gen_random_uuid(), 1 + n % 199 from generate_series(1, 1500) n`,
)
await query(`insert into refresh_token (digest, session_id, expires_at, rotated_at)
  select sha256((id::text || s)::bytea), id, now() + interval '1 day', case when s > 1 then now() end from session, generate_series(1, 3) s`)
await query(
  `insert into idempotency_key (scope, key, fingerprint, status, body) select 's', n::text, '', 204, '' from generate_series(1, 1500) n`,
)
await query(
  `insert into idempotency_key (scope, key, fingerprint, job_id) select 's', 'of ' || id, '', id from job order by id desc limit 1500`,
)
await query(
  `insert into worker_lease (id, name, queues, expires_at) select ('00000000-0000-0000-0000-' || lpad(to_hex(n), 12, '0'))::uuid, 'w',
     '{}', now() + interval '1 h' from generate_series(1, 200) n`,
)
await query(
  `insert into job_dependency (after_id, job_id, has_ended) select id, lead(id, 7, id) over (order by id), true
   from job where ordinal <= 3000`,
)
await query(`insert into start_rate (name, starts, seconds, burst, next_at)
  select 'rate ' || n, 1, 1, 1, now() - n * interval '1 min' from generate_series(1, 3000) n`)
await vacuumAnalyze(query)

const client = await connect({ url, applicationName: 'plans' })
after(() => client.end())
const readValue = async (text: string): Promise<string> => String(Object.values((await query(text))[0]!)[0])
const job = await readValue('select min(id::text) from job where owner_id = 5 and finished_at is not null')
const waiting = await readValue(`select id from job where owner_id = 5 and status = 'available' limit 1`)

/** Values that filter nothing: null matches any kind, tag and day. */
const NO_FILTER = [null, null, null, null] as const
const TAG_FILTER = [null, ['tag 5'], null, null] as const
const FAILED: JobSelection = {
  filter: { queue: 'ai' },
  states: ['failed'],
  before: uuidv7(),
  unretried: true,
}
const RETENTION = [3600, 604_800] as const
const TIME_FILTER = [null, RETENTION, '2026-01-01T00:00:00Z', '2036-01-01T00:00:00Z'] as const
const ORDERS = ['received_at', 'document_date', 'title', 'byte_size', 'page_count'] as const

const reads = [
  planRead('an account', readAccount, 5),
  planRead('a document', readDocument, 5, 5),
  ...ORDERS.flatMap((order) => [
    planRead(
      `documents by ${order}`,
      readDocuments[order].asc,
      5,
      null,
      null,
      null,
      null,
      false,
      null,
      0,
      50,
    ),
    planRead(
      `documents by ${order}, downwards`,
      readDocuments[order].desc,
      5,
      ...NO_FILTER,
      false,
      null,
      0,
      50,
    ),
    planRead(
      `documents with a tag by ${order}`,
      readTaggedDocuments[order].desc,
      5,
      ...TAG_FILTER,
      false,
      null,
      0,
      50,
    ),
  ]),
  planRead(
    'documents without an owner',
    readDocuments.received_at.desc,
    null,
    ...NO_FILTER,
    false,
    null,
    0,
    50,
  ),
  planRead(
    'documents of a kind',
    readDocuments.received_at.desc,
    5,
    'invoice',
    null,
    null,
    null,
    true,
    null,
    100,
    50,
  ),
  planRead(
    'documents of a date range',
    readDocuments.document_date.asc,
    5,
    null,
    null,
    '2026-01-01',
    '2026-01-31',
    true,
    null,
    0,
    50,
  ),
  planRead(
    'documents with two tags',
    readTaggedDocuments.title.asc,
    5,
    null,
    ['tag 5', 'tag 205'],
    null,
    null,
    true,
    null,
    0,
    50,
  ),
  planRead(
    'documents with a word',
    searchDocuments.rank.desc,
    5,
    ...NO_FILTER,
    true,
    'titl -x',
    true,
    null,
    0,
    50,
  ),
  planRead(
    'documents with a word, by title',
    searchDocuments.title.asc,
    5,
    ...NO_FILTER,
    true,
    'titl -x',
    true,
    null,
    0,
    50,
  ),
  planRead(
    'documents without an owner, with a word',
    searchDocuments.rank.desc,
    null,
    ...NO_FILTER,
    true,
    'title',
    false,
    null,
    0,
    50,
  ),
  planRead('a page of the trash', readTrash, 5, ...NO_FILTER, '', null, 0, 50),
  planRead('the trash without an owner', readTrash, null, ...NO_FILTER, '', null, 0, 50),
  planRead('a search of the trash', readTrash, 5, ...NO_FILTER, 'titl -x', null, 0, 50),
  planRead('tags', readTags, 5),
  planRead('the pages of a document', readPages, 5, 5, null, 0, 1000),
  planRead('a page', readPage, 5, 5, 1),
  planRead('the extraction of a document', readExtraction, 5, 5),
  planRead('whether the bytes of a document exist', readBytesPresence, 5, 5),
  planRead('a job', readJob, 5, false, job, RETENTION),
  planRead('the details of a job', readJobDetails, 5, false, job, RETENTION),
  planRead('the details of a job that waits', readJobDetails, null, true, waiting, RETENTION),
  planRead('jobs of an account', readJobs.own, 5, null, RETENTION, null, null, null, 100),
  planRead('jobs of an account that has none', readJobs.own, 200, null, RETENTION, null, null, null, 100),
  planRead('all jobs', readJobs.all, null, null, RETENTION, null, null, null, 100),
  ...(['asc', 'desc'] as const).flatMap((way) => [
    planRead(
      `sorted jobs of an account, ${way}`,
      readSortedJobs.created_at[way].own,
      5,
      ...TIME_FILTER,
      null,
      100,
    ),
    planRead(`sorted jobs, ${way}`, readSortedJobs.created_at[way].all, null, ...TIME_FILTER, null, 100),
  ]),
  planRead('jobs of a time range', readJobs.own, 5, ...TIME_FILTER, null, 100),
  planRead('found jobs', readFoundJobs.all['-created_at'], '{}', null, 50, RETENTION),
  planRead(
    'found jobs that failed',
    readFoundJobs.all['-finished_at'],
    '{"status":"failed"}',
    null,
    50,
    RETENTION,
  ),
  planRead(
    'found jobs that ended',
    readFoundJobs.all['-finished_at'],
    '{}',
    '["2026-01-31T12:00:00Z",5]',
    50,
    RETENTION,
  ),
  ...(['created_at', '-created_at', '-finished_at', '-ran'] as const).flatMap((sort) => [
    planRead(
      `found jobs of an owner by ${sort}`,
      readFoundJobs.owner[sort],
      '{"owner_id":5}',
      null,
      50,
      RETENTION,
    ),
    planRead(
      `found jobs of a batch by ${sort}`,
      readFoundJobs.batch[sort],
      `{"batch":"${job}"}`,
      null,
      50,
      RETENTION,
    ),
    planRead(
      `found jobs of a key by ${sort}`,
      readFoundJobs.key[sort],
      '{"owner_id":5,"key":"k 5"}',
      null,
      50,
      RETENTION,
    ),
  ]),
  planRead('the failures of an hour', readFailures.all, '{}', 3600, RETENTION),
  planRead('the failures of an owner', readFailures.owner, '{"owner_id":5}', 3600, RETENTION),
  planRead('failed jobs', readJobs.own, 5, 'failed', RETENTION, null, null, null, 100),
  planRead('waiting jobs', readJobs.own, 5, 'queued', RETENTION, null, null, null, 1000),
  planRead('events after a cursor', readEventsAfter, [job], [1]),
  planRead('states of jobs', readCurrentStates, [job]),
  planRead('the state of a job', readVisibleState, 5, false, job, RETENTION),
  planRead('states of visible jobs', readVisibleStates, 5, false, [job], RETENTION),
  planRead('live jobs', readLiveIds.own, 5, null, null),
  planRead('all live jobs', readLiveIds.all, null, null, null),
  planRead('live jobs of a queue and a task', readLiveIds.own, 5, 'documents', 'documents.extract'),
  planRead('all live jobs of a queue and a task', readLiveIds.all, null, 'documents', 'documents.extract'),
  planRead('live members', readLiveMemberIds, 5, false, job),
  planRead(
    'jobs that have ended since',
    readEndedJobIds,
    5,
    false,
    Date.now() - 5000,
    job,
    null,
    null,
    RETENTION,
  ),
  planRead(
    'all jobs that have ended since',
    readEndedJobIds,
    null,
    true,
    Date.now() - 5000,
    job,
    'x',
    'y',
    null,
  ),
  planRead('members that have ended since', readEndedMemberIds, 5, false, Date.now() - 5000, job, job),
  planRead('named jobs that have ended since', readEndedNamedIds, 5, false, Date.now() - 5000, job, [job]),
  planRead('queue depths', readQueueDepths),
  planRead('the monitor', readMonitor, RETENTION),
  planRead('results of tasks', readTaskResults, 5, false, [job], ['load_test'], RETENTION, ['x']),
  planRead('the state of named queues', readNamedQueues, ['documents', 'system']),
]

describe('reads by index', () =>
  testReads(client, reads, (what) => {
    // For the values of this read, both plans cost nearly the same, so the planner may choose either.
    if (what === 'failed jobs') return ['auto', 'force_generic_plan']
    // Lists get custom plans (slow-reads.ts), because a generic plan would have to fit every status.
    return /^(found|sorted) jobs/.test(what) ? ['auto', 'force_custom_plan'] : FORCED_MODES
  }))

const decodeHex = (text: string): Buffer => Buffer.from(text.replaceAll('-', ''), 'hex')
const lease = '00000000-0000-0000-0000-000000000001'
const createDocumentFields = (owner: number | null, sha256: Buffer) => ({
  ownerId: owner,
  title: 't',
  kind: undefined,
  mediaType: 'text/plain',
  byteSize: 1,
  sha256,
  documentDate: undefined,
  source: undefined,
  channel: undefined,
  note: undefined,
})

describe('writes by index', () => {
  const sha = (n: number): Promise<string> => readValue(`select encode(sha256('${n}'), 'hex')`)
  const writes: readonly [what: string, () => Promise<Query<unknown>>][] = [
    [
      'enqueue',
      async () =>
        enqueueJobs(
          [buildJobSpec(), buildJobSpec({ actor: 'actor:50' }), buildJobSpec({ actor: 'fresh' })],
          1_000_000,
        ),
    ],
    [
      'claim',
      async () => {
        const delivery = { task: 'n', mailbox: 'actor:200', owner: null, first: 0, id: job }
        const other = { ...delivery, mailbox: 'of nobody', limit: null }
        return claimJobs(lease, [
          { delivery: { ...delivery, limit: 1 }, freeSlots: 1 },
          { delivery: other, freeSlots: 9 },
        ])
      },
    ],
    [
      'progress',
      async () =>
        storeProgress([
          {
            id: await readValue(`select id from job where status = 'running' limit 1`),
            attempt: 0,
            n: 1,
            kind: 'k',
            data: {},
          },
        ]),
    ],
    [
      'finish',
      async () =>
        finishJobs([
          {
            id: await readValue(`select id from job where status = 'running' limit 1`),
            attempt: 0,
            outcome: 'cancelled',
          },
        ]),
    ],
    [
      'requeue deliveries',
      async () =>
        requeueDeliveries([{ task: 'n', mailbox: 'actor:200', limit: null, first: 0, id: job, owner: null }]),
    ],
    ['rescue running jobs', async () => rescueRunningJobs(null)],
    ['lost attempts', async () => listLostAttempts([job])],
    [
      'cancel',
      async () => cancelJobs([await readValue(`select id from job where status = 'available' limit 1`)]),
    ],
    ['fence', async () => fenceJob(job, 1)],
    [
      'reserve a start',
      async () =>
        reserveStart({ name: 'provider:sms', starts: 1, seconds: 1 }, { maxWaitMs: 0, comesBack: true }),
    ],
    ['renew', async () => renewLease(lease, IDLE_LOAD, 60_000, [job])],
    ['check running jobs', async () => listRunningJobs(lease)],
    ['the history of a job', async () => findJobHistory(job, 100)],
    ['jobs to retry', async () => lockJobsToRetry([job])],
    ['the retries of jobs', async () => listRetries([job])],
    ['retries', async () => linkRetries([uuidv7()], [job])],
    ['failed jobs', async () => listSelectedIds(FAILED, null, 100_000)],
    [
      'failed jobs of an owner',
      async () => listSelectedIds({ ...FAILED, filter: { owner_id: 5 } }, null, 100_000),
    ],
    [
      'failed jobs of a batch',
      async () => listSelectedIds({ ...FAILED, filter: { batch: job } }, null, 100_000),
    ],
    [
      'failed jobs of a key',
      async () => listSelectedIds({ ...FAILED, filter: { owner_id: 5, key: 'k 5' } }, null, 100_000),
    ],
    ['count failed jobs', async () => countSelectedJobs(FAILED, 1_000_000)],
    ['selected failed jobs', async () => listSelectedIds({ ...FAILED, only: [job] }, null, 100)],
    ['delete ended jobs', async () => deleteEndedJobs([job])],
    ['remove expired jobs', async () => deleteExpiredJobs('others', [4000, 4000], 100)],
    ['remove expired failed jobs', async () => deleteExpiredJobs('failed', [4000, 4000], 100)],
    ['remove unused rates', async () => deleteUnusedRates(100)],
    ['refund interruptions', async () => refundInterruptions([job])],
    ['a new document', async () => insertDocument(createDocumentFields(5, randomBytes(32)))],
    ['an existing document', async () => insertDocument(createDocumentFields(5, decodeHex(await sha(205))))],
    [
      'an existing document without an owner',
      async () => insertDocument(createDocumentFields(null, decodeHex(await sha(200)))),
    ],
    ['cancel the extractions of a document', async () => cancelExtractions([7, 8], 7)],
    ['find deleted documents', async () => findDeletedDocuments([7, 8], 7)],
    ['list stored documents', async () => listOwnedDocuments([7, 8], 7)],
    ['tag documents', async () => addTag([7, 207], 7, 'blue')],
    ['untag documents', async () => removeTag([7, 207], 7, 'blue')],
    ['move a document to the trash', async () => deleteDocuments([7], 7, 30)],
    ['a document in the trash', async () => findTrashedDigest(7, 7)],
    ['restore a document', async () => restoreDocument(7, 7)],
    ['delete a document permanently', async () => deleteDocuments([7], 7, null)],
    ['the bytes of a document', async () => findDocumentContent(8, 8)],
    ['the bytes of a digest', async () => findSealedBlob(decodeHex(await sha(8)))],
    ['blobs to be collected', async () => findUnreferencedBlobs(1000, 60, 100)],
    ['uploads to be collected', async () => markAbandonedBlobs(0, 60, 100)],
    ['the pages of an extraction', async () => listExtractedPages(8, uuidv7())],
    ['count pages', async () => countPages(8, uuidv7())],
    [
      'refresh a session',
      async () =>
        refreshSession(
          decodeHex(
            await readValue(
              `select encode(digest, 'hex') from refresh_token where rotated_at is null limit 1`,
            ),
          ),
          randomBytes(32),
          60,
        ),
    ],
    ['remove expired tokens', async () => deleteExpiredRefreshTokens(100)],
    ['claim a key', async () => claimKey('s', 'new', Buffer.from('f'))],
    ['remove expired keys', async () => deleteExpiredIdempotencyKeys(100)],
  ]
  for (const [what, make] of writes) test(what, () => assertWriteByIndex(client, make))
})
