import { createHash } from 'node:crypto'
import { deleteConversation } from '../../sql/ai/conversations.ts'
import { storeJudgement } from '../../sql/ai/sentiment.ts'
import { insertFirstTurn } from '../../sql/ai/turns.ts'
import { insertUsage } from '../../sql/ai/usage.ts'
import { deletePost, insertPost } from '../../sql/blog/posts.ts'
import { archivePost, publishPost } from '../../sql/blog/publishing.ts'
import {
  applySendEvents,
  beginSendRequest,
  CHANNELS,
  insertSend,
  markFailed,
  markSent,
  markUnknown,
  type SendEvent,
} from '../../sql/comms/sends.ts'
import type { Query } from '../../sql/db.ts'
import {
  addTag,
  deleteDocuments,
  insertDocument,
  removeTag,
  restoreDocument,
} from '../../sql/documents/documents.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { applyChanges, linkCustomer, refuseRefund, reserveRefund } from '../../sql/payments/changes.ts'
import { ACCOUNT_DEPENDENTS, purgeRows } from '../../sql/retention/purge.ts'
import type { Chance } from '../chance.ts'

/** Writes at random, with the service's statements, to all tables that have stored sums. */

/** Latest ids of each table. */
export type Ids = Readonly<Record<'blog_post' | 'document' | 'payment_transaction', readonly number[]>>
export const LATEST_IDS = (['blog_post', 'document', 'payment_transaction'] as const)
  .map(
    (table) =>
      `(select array_agg(id::int) from (select id from ${table} order by id desc limit 12) ids) as ${table}`,
  )
  .join(', ')

/** Returns a write to one of a few rows, so that concurrent writes conflict. */
type Write = (chance: Chance, ids: Ids) => Query<unknown> | string

const pickId = (kind: string, chance: Chance): string => `${kind}_${chance.between(1, 12)}`
const stampValue = (chance: Chance, value: unknown): readonly [string, unknown] => [
  String(chance.between(1, 5)),
  value,
]
// Returns a time within three days; the boundaries between days are frequent.
const pickSeconds = (chance: Chance): number =>
  1_700_006_400 + chance.pick([-1, 0, 1, 40_000, 86_399, 86_400])
const pickOwner = (chance: Chance): number => chance.between(1, 4)

const writeTransaction: Write = (chance) =>
  applyChanges([
    {
      kind: 'transaction',
      // Sometimes names two payments, which the change then merges.
      ids: [pickId('pi', chance), ...(chance.isHit(0.1) ? [pickId('pi', chance)] : [])],
      facts: {
        money: stampValue(chance, {
          amount: chance.between(100, 500),
          currency: chance.pick(['usd', 'eur']),
        }),
        outcome: stampValue(chance, chance.pick(['succeeded', 'succeeded', 'failed', 'pending'])),
        ...(chance.isHit(0.8) ? { created: stampValue(chance, pickSeconds(chance)) } : {}),
        ...(chance.isHit(0.5) ? { customer: ['1', pickId('cus', chance)] } : {}),
        ...(chance.isHit(0.2)
          ? { refunded: stampValue(chance, { amount: chance.between(0, 600), at: pickSeconds(chance) }) }
          : {}),
        ...(chance.isHit(0.1) ? { unlinked: stampValue(chance, chance.isHit(0.5)) } : {}),
      },
    },
  ])

const writeRefund: Write = (chance) =>
  applyChanges([
    {
      kind: 'refund',
      id: pickId('re', chance),
      ids: [pickId('pi', chance)],
      request: null,
      facts: {
        money: stampValue(chance, { amount: chance.between(1, 80), currency: 'usd' }),
        outcome: stampValue(chance, chance.pick(['succeeded', 'pending', 'failed'])),
        refund: ['1', 're'],
        created: ['1', pickSeconds(chance)],
        ...(chance.isHit(0.3) ? { returned_at: ['1', pickSeconds(chance)] } : {}),
      },
    },
  ])

const writeSubscription: Write = (chance) =>
  applyChanges([
    {
      kind: 'subscription',
      id: pickId('sub', chance),
      facts: {
        status: stampValue(chance, chance.pick(['active', 'trialing', 'canceled', 'past_due'])),
        ...(chance.isHit(0.5) ? { customer: ['1', pickId('cus', chance)] } : {}),
      },
    },
  ])

const payments: readonly Write[] = [
  ...[writeTransaction, writeTransaction, writeTransaction, writeRefund, writeSubscription],
  (chance) => linkCustomer(pickOwner(chance), pickId('cus', chance)),
  (chance, { payment_transaction }) =>
    reserveRefund(chance.pick(payment_transaction), null, chance.between(1, 50), null),
  (chance, { payment_transaction }) =>
    refuseRefund(chance.pick(payment_transaction), { code: 'c', detail: 'd' }),
]

const pickConversation = (chance: Chance): string =>
  `00000000-0000-7000-8000-${String(chance.between(1, 24)).padStart(12, '0')}`

const writeFirstTurn: Write = (chance) => {
  const ids = {
    conversationId: pickConversation(chance),
    jobId: uuidv7(),
    question: { id: uuidv7(), content: 'Q', documentIds: [], toolResults: null },
    answerId: uuidv7(),
  }
  const ownerId = chance.isHit(0.7) ? pickOwner(chance) : null
  const turn = { ...ids, provider: 'p', model: 'm' }
  return insertFirstTurn(turn, { userId: String(ownerId ?? 'u'), ownerId, title: 'T' })
}

const writeAnswer: Write = () => `
  update ai_message set status = 'complete', content = 'A', settled_at = now() where status = 'pending';
  update ai_conversation set unscored_since = 'today'`

const writeSentiment: Write = (chance) =>
  storeJudgement(
    { id: pickConversation(chance), since: 'today' },
    {
      sentiment: chance.pick(['positive', 'neutral', 'negative', 'frustrated']),
      performance: chance.pick(['good', 'acceptable', 'poor']),
      score: chance.between(-10, 10) / 10,
    },
  )

const writeUnownedUsage: Write = (chance) =>
  insertUsage({
    ...{ userId: chance.pick(['u', '1']), conversationId: null, action: 'chat', cached: 0, reasoning: 0 },
    ...{ vendor: chance.pick(['v', 'w']), model: chance.pick(['m', 'n']), estimated: chance.isHit(0.3) },
    ...{ input: chance.between(0, 50), output: chance.between(0, 50), success: chance.isHit(0.8) },
    cost: chance.isHit(0.7) ? `0.00${chance.between(1, 999)}` : null,
  })

const writeOwnedUsage: Write = (chance) => `
  insert into ai_usage (user_id, owner_id, key_id, action, vendor, model, input_tokens, output_tokens, audio_seconds, cost, estimated, success, created_at)
  select id::text, id, case when n % 2 = 0 then '00000000-0000-7000-8000-000000000001'::uuid end, 'chat', 'v', 'm', n, 2, n * 0.5, case when n % 3 > 0 then 0.0001 * n end, n % 2 = 0, n % 4 > 0,
    to_timestamp(${pickSeconds(chance)})
  from account, generate_series(1, ${chance.between(1, 5)}) n where id = ${pickOwner(chance)}`

const ai: readonly Write[] = [
  ...[
    writeFirstTurn,
    writeFirstTurn,
    writeAnswer,
    writeSentiment,
    writeSentiment,
    writeSentiment,
    writeUnownedUsage,
    writeOwnedUsage,
  ],
  (chance) => deleteConversation(pickConversation(chance)),
]

const writePost: Write = (chance) =>
  insertPost({
    ...{ title: 'T', slug: `s-${chance.between(1, 12)}`, content: '', excerpt: null, seo_title: null },
    ...{ seo_description: null, hero_image_url: null, authorId: null, authorName: null },
  })

const blog: readonly Write[] = [
  ...[writePost, writePost],
  (chance, { blog_post }) => publishPost(chance.pick(blog_post), null),
  (chance, { blog_post }) => archivePost(chance.pick(blog_post)),
  (chance, { blog_post }) => deletePost(chance.pick(blog_post)),
]

const writeDocument: Write = (chance) =>
  insertDocument({
    ...{ ownerId: chance.isHit(0.7) ? pickOwner(chance) : null, title: 'T', kind: undefined },
    ...{
      mediaType: 'text/plain',
      byteSize: 1,
      sha256: createHash('sha256').update(pickId('d', chance)).digest(),
    },
    ...{ documentDate: undefined, source: undefined, channel: undefined, note: undefined },
  })

const writeTag: Write = (chance, { document }) =>
  addTag([chance.pick(document)], chance.pick([pickOwner(chance), null]), chance.pick(['a', 'b']))

const documents: readonly Write[] = [
  ...[writeDocument, writeDocument, writeTag, writeTag, writeTag],
  (chance, { document }) => removeTag([chance.pick(document)], pickOwner(chance), chance.pick(['a', 'b'])),
  (chance, { document }) => deleteDocuments([chance.pick(document)], pickOwner(chance), 30),
  (chance, { document }) => restoreDocument(chance.pick(document), pickOwner(chance)),
]

const writeAccounts: Write = () => `
  insert into account (id, email, password_hash) overriding system value
  select n, n || '@example.com', 'x' from generate_series(1, 4) n on conflict do nothing`

const send = (chance: Chance): string =>
  `00000000-0000-7000-9000-${String(chance.between(1, 16)).padStart(12, '0')}`

const writeSend: Write = (chance) => {
  const id = send(chance)
  const ownerId = chance.isHit(0.5) ? pickOwner(chance) : null
  return insertSend({
    id,
    channel: chance.pick(CHANNELS),
    ownerId,
    jobId: id,
    recipients: ['r'],
    message: {},
    sendAt: chance.isHit(0.3) ? '2030-01-01T00:00:00Z' : null,
  })
}

const attempt = (n: number) => ({ id: uuidv7(), attempt: n })

const eventOf = (chance: Chance): SendEvent => {
  const status = chance.pick(['sent', 'delivered', 'failed', 'bounced', 'complained'] as const)
  const sendId = send(chance)
  const errorCode = status === 'failed' ? 'email.undelivered' : null
  const channel = chance.pick(CHANNELS)
  return { channel, providerId: sendId, sendId, status, providerStatus: status, errorCode, detail: null }
}

const comms: readonly Write[] = [
  ...[writeSend, writeSend],
  (chance) => beginSendRequest(send(chance), attempt(1), chance.isHit(0.5)),
  (chance) => beginSendRequest(send(chance), attempt(1), true),
  (chance) => markSent(send(chance), { providerId: null, status: 'accepted', detail: null }),
  (chance) => markFailed(send(chance), 1, { code: 'comms.refused', detail: 'd' }),
  (chance) => markUnknown(send(chance), 'd'),
  (chance) => applySendEvents([eventOf(chance), eventOf(chance)]),
  (chance) => `update comms_send set status = 'cancelled', settled_at = now(), error_code = null
    where id = '${send(chance)}' and status in ('scheduled', 'queued', 'failed') and provider_id is null`,
  (chance) => `delete from comms_send where id = '${send(chance)}'`,
]

const accounts: readonly Write[] = [
  ...[writeAccounts, writeAccounts],
  (chance) => purgeRows({ ...chance.pick(ACCOUNT_DEPENDENTS), max: 3 }, pickOwner(chance)),
  // Deletes an account. Foreign keys delete or clear the rows that purges have left.
  (chance) => `delete from account where id = ${pickOwner(chance)}`,
]

const webhooks: readonly Write[] = [
  (chance) => `
    insert into webhook_endpoint (secret, account_id, url, host, events)
    select 'aaaaaaaa.AAAA', id, 'https://example.com/', 'example.com', '{job.done}' from account where id = ${pickOwner(chance)}`,
  (chance) => `
    insert into webhook_delivery (endpoint_id, type, body)
    select e.id, 't', '{}' from webhook_endpoint e, generate_series(1, ${chance.between(1, 3)}) where account_id = ${pickOwner(chance)} limit 9`,
  (chance) => `
    update webhook_delivery set status = 'delivered', due_at = null, ended_at = now()
    where due_at is not null and id % 3 = ${chance.between(0, 2)}`,
  () => `update webhook_delivery set due_at = now() + interval '45 s' where due_at is not null`,
]

const WRITES_BY_AREA = [payments, payments, ai, ai, blog, comms, documents, accounts, webhooks]

export const pickWrite: Write = (chance, ids) => chance.pick(chance.pick(WRITES_BY_AREA))(chance, ids)
