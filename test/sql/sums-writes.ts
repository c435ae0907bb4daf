import { createHash } from 'node:crypto'
import { storeJudgement } from '../../sql/ai/sentiment.ts'
import { insertFirstTurn } from '../../sql/ai/turns.ts'
import { insertUsage } from '../../sql/ai/usage.ts'
import { deleteConversation } from '../../sql/ai.ts'
import { archivePost, deletePost, insertPost, publishPost } from '../../sql/blog.ts'
import {
  applyEvents,
  beginRequest,
  CHANNELS,
  insertSend,
  markFailed,
  markSent,
  markUnknown,
  type SendEvent,
} from '../../sql/comms.ts'
import type { Query } from '../../sql/db.ts'
import { addTag, deleteDocuments, insertDocument, removeTag, restoreDocument } from '../../sql/documents.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { applyChanges, linkCustomer, refuseRefund, reserveRefund } from '../../sql/payment-changes.ts'
import { ACCOUNT_DEPENDENTS, purgeRows } from '../../sql/purge.ts'
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

const named = (kind: string, chance: Chance): string => `${kind}_${chance.between(1, 12)}`
const stamped = (chance: Chance, value: unknown): readonly [string, unknown] => [
  String(chance.between(1, 5)),
  value,
]
// Returns a time within three days; the boundaries between days are frequent.
const seconds = (chance: Chance): number => 1_700_006_400 + chance.pick([-1, 0, 1, 40_000, 86_399, 86_400])
const owner = (chance: Chance): number => chance.between(1, 4)

const transaction: Write = (chance) =>
  applyChanges([
    {
      kind: 'transaction',
      // Sometimes names two payments, which the change then merges.
      ids: [named('pi', chance), ...(chance.happens(0.1) ? [named('pi', chance)] : [])],
      facts: {
        money: stamped(chance, { amount: chance.between(100, 500), currency: chance.pick(['usd', 'eur']) }),
        outcome: stamped(chance, chance.pick(['succeeded', 'succeeded', 'failed', 'pending'])),
        ...(chance.happens(0.8) ? { created: stamped(chance, seconds(chance)) } : {}),
        ...(chance.happens(0.5) ? { customer: ['1', named('cus', chance)] } : {}),
        ...(chance.happens(0.2) ? { refunded: stamped(chance, chance.between(0, 600)) } : {}),
      },
    },
  ])

const refund: Write = (chance) =>
  applyChanges([
    {
      kind: 'refund',
      id: named('re', chance),
      ids: [named('pi', chance)],
      request: null,
      facts: {
        money: stamped(chance, { amount: chance.between(1, 80), currency: 'usd' }),
        outcome: stamped(chance, chance.pick(['succeeded', 'pending', 'failed'])),
        refund: ['1', 're'],
        created: ['1', seconds(chance)],
      },
    },
  ])

const subscription: Write = (chance) =>
  applyChanges([
    {
      kind: 'subscription',
      id: named('sub', chance),
      facts: {
        status: stamped(chance, chance.pick(['active', 'trialing', 'canceled', 'past_due'])),
        ...(chance.happens(0.5) ? { customer: ['1', named('cus', chance)] } : {}),
      },
    },
  ])

const payments: readonly Write[] = [
  ...[transaction, transaction, transaction, refund, subscription],
  (chance) => linkCustomer(owner(chance), named('cus', chance)),
  (chance, { payment_transaction }) =>
    reserveRefund(chance.pick(payment_transaction), null, chance.between(1, 50), null),
  (chance, { payment_transaction }) =>
    refuseRefund(chance.pick(payment_transaction), { code: 'c', detail: 'd' }),
]

const conversation = (chance: Chance): string =>
  `00000000-0000-7000-8000-${String(chance.between(1, 24)).padStart(12, '0')}`

const firstTurn: Write = (chance) => {
  const ids = {
    conversationId: conversation(chance),
    jobId: uuidv7(),
    questionId: uuidv7(),
    answerId: uuidv7(),
  }
  const ownerId = chance.happens(0.7) ? owner(chance) : null
  const turn = { ...ids, message: 'Q', provider: 'p', model: 'm' }
  return insertFirstTurn(turn, { userId: String(ownerId ?? 'u'), ownerId, title: 'T' })
}

const answered: Write = () => `
  update ai_message set status = 'complete', content = 'A', settled_at = now() where status = 'pending';
  update ai_conversation set unscored_since = 'today'`

const judgement: Write = (chance) =>
  storeJudgement(
    { id: conversation(chance), since: 'today' },
    {
      sentiment: chance.pick(['positive', 'neutral', 'negative', 'frustrated']),
      performance: chance.pick(['good', 'acceptable', 'poor']),
      score: chance.between(-10, 10) / 10,
    },
  )

const unownedUsage: Write = (chance) =>
  insertUsage({
    ...{ userId: chance.pick(['u', '1']), conversationId: null, action: 'chat', cached: 0, reasoning: 0 },
    ...{ vendor: chance.pick(['v', 'w']), model: chance.pick(['m', 'n']), estimated: chance.happens(0.3) },
    ...{ input: chance.between(0, 50), output: chance.between(0, 50), success: chance.happens(0.8) },
    cost: chance.happens(0.7) ? `0.00${chance.between(1, 999)}` : null,
  })

const ownedUsage: Write = (chance) => `
  insert into ai_usage (user_id, owner_id, action, vendor, model, input_tokens, output_tokens, audio_seconds, cost, estimated, success, created_at)
  select id::text, id, 'chat', 'v', 'm', n, 2, n * 0.5, case when n % 3 > 0 then 0.0001 * n end, n % 2 = 0, n % 4 > 0,
    to_timestamp(${seconds(chance)})
  from account, generate_series(1, ${chance.between(1, 5)}) n where id = ${owner(chance)}`

const ai: readonly Write[] = [
  ...[firstTurn, firstTurn, answered, judgement, judgement, judgement, unownedUsage, ownedUsage],
  (chance) => deleteConversation(conversation(chance)),
]

const newPost: Write = (chance) =>
  insertPost({
    ...{ title: 'T', slug: `s-${chance.between(1, 12)}`, content: '', excerpt: null, seo_title: null },
    ...{ seo_description: null, hero_image_url: null, authorId: null, authorName: null },
  })

const blog: readonly Write[] = [
  ...[newPost, newPost],
  (chance, { blog_post }) => publishPost(chance.pick(blog_post)),
  (chance, { blog_post }) => archivePost(chance.pick(blog_post)),
  (chance, { blog_post }) => deletePost(chance.pick(blog_post)),
]

const newDocument: Write = (chance) =>
  insertDocument({
    ...{ ownerId: chance.happens(0.7) ? owner(chance) : null, title: 'T', kind: undefined },
    ...{
      mediaType: 'text/plain',
      byteSize: 1,
      sha256: createHash('sha256').update(named('d', chance)).digest(),
    },
    ...{ documentDate: undefined, source: undefined, channel: undefined, note: undefined },
  })

const addedTag: Write = (chance, { document }) =>
  addTag([chance.pick(document)], chance.pick([owner(chance), null]), chance.pick(['a', 'b']))

const documents: readonly Write[] = [
  ...[newDocument, newDocument, addedTag, addedTag, addedTag],
  (chance, { document }) => removeTag([chance.pick(document)], owner(chance), chance.pick(['a', 'b'])),
  (chance, { document }) => deleteDocuments([chance.pick(document)], owner(chance), 30),
  (chance, { document }) => restoreDocument(chance.pick(document), owner(chance)),
]

const newAccounts: Write = () => `
  insert into account (id, email, password_hash) overriding system value
  select n, n || '@example.com', 'x' from generate_series(1, 4) n on conflict do nothing`

const send = (chance: Chance): string =>
  `00000000-0000-7000-9000-${String(chance.between(1, 16)).padStart(12, '0')}`

const newSend: Write = (chance) => {
  const id = send(chance)
  const ownerId = chance.happens(0.5) ? owner(chance) : null
  return insertSend({
    id,
    channel: chance.pick(CHANNELS),
    ownerId,
    jobId: id,
    recipients: ['r'],
    message: {},
    sendAt: chance.happens(0.3) ? '2030-01-01T00:00:00Z' : null,
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
  ...[newSend, newSend],
  (chance) => beginRequest(send(chance), attempt(1), chance.happens(0.5)),
  (chance) => beginRequest(send(chance), attempt(1), true),
  (chance) => markSent(send(chance), { providerId: null, status: 'accepted', detail: null }),
  (chance) => markFailed(send(chance), 1, 'comms.refused', 'd'),
  (chance) => markUnknown(send(chance), 'd'),
  (chance) => applyEvents([eventOf(chance), eventOf(chance)]),
  (chance) => `update comms_send set status = 'cancelled', settled_at = now(), error_code = null
    where id = '${send(chance)}' and status in ('scheduled', 'queued', 'failed') and provider_id is null`,
  (chance) => `delete from comms_send where id = '${send(chance)}'`,
]

const accounts: readonly Write[] = [
  ...[newAccounts, newAccounts],
  (chance) => purgeRows({ ...chance.pick(ACCOUNT_DEPENDENTS), max: 3 }, owner(chance)),
  // Afterwards foreign keys delete or clear the rows that a purge has left.
  (chance) => `delete from account where id = ${owner(chance)}`,
]

const webhooks: readonly Write[] = [
  (chance) => `
    insert into webhook_endpoint (account_id, url, host, events)
    select id, 'https://example.com/', 'example.com', '{job.done}' from account where id = ${owner(chance)}`,
  (chance) => `
    insert into webhook_delivery (endpoint_id, type, body)
    select e.id, 't', '{}' from webhook_endpoint e, generate_series(1, ${chance.between(1, 3)}) where account_id = ${owner(chance)} limit 9`,
  (chance) => `
    update webhook_delivery set status = 'delivered', due_at = null, ended_at = now()
    where due_at is not null and id % 3 = ${chance.between(0, 2)}`,
  () => `update webhook_delivery set due_at = now() + interval '45 s' where due_at is not null`,
]

const KINDS = [payments, payments, ai, ai, blog, comms, documents, accounts, webhooks]

export const randomWrite: Write = (chance, ids) => chance.pick(chance.pick(KINDS))(chance, ids)
