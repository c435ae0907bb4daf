import { SEND_STATUSES } from '../../../sql/comms.ts'
import { MAX_COUNTED } from '../../../sql/lists.ts'
import { METRICS_TOKEN } from '../../every-service.ts'
import type { Targets } from './targets.ts'

/** Callers and arguments for each GET route, both usual and most expensive ones. */

export type Who = 'admin' | 'big' | 'small' | 'nobody'

export interface Asked {
  readonly who: Who
  /** Distinguishes the requests of a route; equal at every size. */
  readonly what?: string
  readonly params?: Readonly<Record<string, string | number>>
  readonly query?: Readonly<Record<string, string | number | boolean>>
  readonly headers?: Readonly<Record<string, string>>
  /** Pause in ms between two requests, for routes whose answers the edge caches. */
  readonly restMs?: number
}
type Make = (places: Targets) => readonly Asked[]

const PAGE = 20
// Lists count up to MAX_COUNTED rows; only cursors lead further.
const lastPage = (total: number): number => Math.max(1, Math.ceil(Math.min(total, MAX_COUNTED) / PAGE))

/** Makes the same request for each caller. */
const by =
  (whos: readonly Who[], more: Omit<Asked, 'who'> = {}): Make =>
  () =>
    whos.map((who) => ({ who, ...more }))
const big = (more: Omit<Asked, 'who'> = {}): Asked => ({ who: 'big', ...more })
const small = (more: Omit<Asked, 'who'> = {}): Asked => ({ who: 'small', ...more })
const admin = (more: Omit<Asked, 'who'> = {}): Asked => ({ who: 'admin', ...more })
const nobody = (more: Omit<Asked, 'who'> = {}): Asked => ({ who: 'nobody', ...more })

/** Makes requests for the first and the last page. */
const ends = (who: Who, total: number, more: Omit<Asked, 'who'> = {}): Asked[] =>
  [1, lastPage(total)].map((page, i) => ({
    who,
    ...more,
    what: [more.what, i === 0 ? 'first page' : 'last page'].filter(Boolean).join(', '),
    query: { ...more.query, page_size: PAGE, page },
  }))
/** Makes one request for each value of a parameter. */
const values = (who: Who, name: string, given: readonly string[], more: Omit<Asked, 'who'> = {}): Asked[] =>
  given.map((value) => ({
    who,
    ...more,
    what: `${name}=${value}`,
    query: { ...more.query, [name]: value },
  }))

const anybody: Make = by(['nobody'])
const everybody: Make = by(['admin', 'big', 'small'])

// Even the smallest table has this many rare rows.
const SHORT = { query: { limit: 10 } }

const daysAgo = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString()
/** Returns the parameters of a time range, from `from` to `to` days ago. */
const ofDays = (from: number, to: number) => ({ from: daysAgo(from), to: daysAgo(to) })

const accounts: Record<string, Make> = {
  '/api/v1/auth/me': everybody,
  '/api/v1/auth/me/email': everybody,
  '/api/v1/auth/me/quotas': by(['big', 'small']),
  '/api/v1/auth/me/export': by(['admin', 'big', 'small'], SHORT),
  '/api/v1/auth/me/export/:id': ({ exported }) => [big({ params: { id: exported } })],
  '/api/v1/auth/sessions': by(['admin', 'big', 'small'], SHORT),
  '/api/v1/auth/keys': () => [
    ...[admin, big, small].map((one) => one(SHORT)),
    big({ what: 'of an organization', query: { ...SHORT.query, organization_id: 1 } }),
  ],
  '/api/v1/auth/passkeys': by(['admin', 'big', 'small'], SHORT),
  '/api/v1/auth/totp': everybody,
  '/api/v1/auth/users': ({ total }) => [
    ...ends('admin', total.accounts),
    ...values('admin', 'sort', ['created_at', 'email', '-email', '-last_login'], SHORT),
    ...values('admin', 'role', ['user', 'admin'], { query: { page_size: 1 } }),
    admin({ what: 'inactive ones by address', query: { is_active: false, sort: 'email' } }),
    admin({ what: 'of a day', query: { ...ofDays(100, 99), page_size: 1 } }),
    admin({ what: 'search, an address', query: { search: 'person-50@' } }),
    admin({ what: 'search, what many have', query: { search: 'example', ...SHORT.query } }),
    admin({ what: 'search, what nobody has', query: { search: 'zzzzzzz', sort: 'email' } }),
  ],
  '/api/v1/auth/users/:user_id': by(['admin'], { params: { user_id: 3 } }),
  '/api/v1/auth/users/:user_id/quotas': by(['admin'], { params: { user_id: 2 } }),
  '/api/v1/auth/audit': ({ total }) => [
    ...ends('admin', total.audit),
    ...values('admin', 'kind', ['account.signed_in', 'member.added', 'session.replayed']),
    admin({ what: 'of the big account', query: { account_id: 2 } }),
    admin({ what: 'of the small account', query: { account_id: 3 } }),
    admin({ what: 'of an organization', query: { organization_id: 1 } }),
    admin({ what: 'of a kind and an account', query: { account_id: 2, kind: 'account.updated' } }),
    admin({ what: 'of an hour', query: ofDays(100, 100 - 1 / 24) }),
    admin({
      what: 'of some weeks and a kind, oldest first',
      query: { ...ofDays(130, 100), kind: 'member.added', sort: 'at' },
    }),
  ],
}

const webhooks: Record<string, Make> = {
  '/api/v1/webhooks': () => [
    ...[admin, big, small].map((one) => one(SHORT)),
    big({ what: 'of an organization', query: { ...SHORT.query, organization_id: 1 } }),
  ],
  '/api/v1/webhooks/:endpoint_id': by(['admin', 'big'], { params: { endpoint_id: 1 } }),
  '/api/v1/webhooks/:endpoint_id/deliveries': () => [
    big({ params: { endpoint_id: 1 } }),
    ...values('big', 'status', ['pending', 'delivered', 'failed'], { params: { endpoint_id: 1 } }),
  ],
  '/api/v1/webhooks/:endpoint_id/deliveries/:delivery_id': by(['big'], {
    params: { endpoint_id: 1, delivery_id: 1 },
  }),
}

const ofOrganization = (members: (places: Targets) => number): Make => {
  const params = { org_id: 1 }
  return (places) => [
    ...ends('big', members(places), { params }),
    small({ what: 'of a small one', params: { org_id: 2 } }),
  ]
}
const organizations: Record<string, Make> = {
  '/api/v1/orgs': everybody,
  '/api/v1/orgs/all': ({ total }) => ends('admin', total.organizations),
  '/api/v1/orgs/memberships': ({ total }) => ends('admin', total.memberships),
  '/api/v1/orgs/:org_id': by(['big'], { params: { org_id: 1 } }),
  '/api/v1/orgs/:org_id/members': ofOrganization(({ total }) => total.members),
  '/api/v1/orgs/:org_id/members/details': ofOrganization(({ total }) => total.members),
  '/api/v1/orgs/:org_id/invites': ofOrganization(({ total }) => total.invites),
}

const blog: Record<string, Make> = {
  '/api/v1/blog/posts': ({ total, rareTag }) => [
    ...ends('nobody', total.published),
    nobody({ what: 'of a common tag', query: { tag: 'tag-1' } }),
    nobody({ what: 'of a rare tag', query: { tag: rareTag } }),
  ],
  '/api/v1/blog/posts/:post': ({ post }) => [nobody({ params: { post } })],
  '/api/v1/blog/admin/posts': ({ total }) => [
    ...ends('admin', total.posts),
    ...values('admin', 'status', ['draft', 'published', 'archived']),
    admin({ what: 'drafts of a common tag', query: { tag: 'tag-1', status: 'draft' } }),
  ],
  '/api/v1/blog/tags': () => [
    nobody({ what: 'the most' }),
    nobody({ what: 'on a small page', query: { page_size: 10 } }),
  ],
  '/api/v1/blog/export': by(['admin'], {
    what: 'the whole of it',
    query: { format: 'json' },
  }),
}

const PATH = '/api/v1/documents'
const documents: Record<string, Make> = {
  [PATH]: ({ total, word }) => [
    ...ends('big', total.documents),
    big({ what: 'of a kind', query: { kind: 'contract' } }),
    big({ what: 'of no kind that there is', query: { kind: 'nothing' } }),
    big({ what: 'of a common tag', query: { tag: 'tag-2' } }),
    big({ what: 'of a rare tag', query: { tag: 'tag-199' } }),
    big({ what: 'with superseded ones', query: { include_superseded: true } }),
    big({ what: 'on a large page', query: { page_size: 200 } }),
    ...ends('big', total.trashed, { what: 'trashed', query: { trashed: true } }),
    small(),
    small({ what: 'of a kind', query: { kind: 'contract' } }),
    small({ what: 'of a common tag', query: { tag: 'tag-2' } }),
    ...(['big', 'small'] as const).flatMap((who) => searches(who, word)),
  ],
  [`${PATH}/tags`]: by(['big', 'small']),
  [`${PATH}/:id`]: ({ document }) => [
    big({ params: { id: document.big } }),
    small({ params: { id: document.small } }),
  ],
  [`${PATH}/:id/content`]: ({ document }) => [big({ params: { id: document.big } })],
  [`${PATH}/:id/extraction`]: ({ document }) => [big({ params: { id: document.big } })],
  [`${PATH}/:id/pages`]: ({ document }) => [
    big({ params: { id: document.big } }),
    big({ what: 'of the longest document', params: { id: document.longest } }),
  ],
  [`${PATH}/:id/pages/:number`]: ({ document }) => [big({ params: { id: document.big, number: 1 } })],
  [`${PATH}/:id/pages/:number/image`]: ({ document }) => [
    big({ params: { id: document.pictured, number: 1 } }),
  ],
}
function searches(who: Who, word: Targets['word']): Asked[] {
  const search = (what: string, text: string): Asked => ({
    who,
    what: `search, ${what}`,
    query: { search: text },
  })
  return [
    search('a word of nearly every page', word.common),
    search('a frequent word', word.frequent),
    search('a word of one page in twenty', word.medium),
    search('a rare word', word.rare),
    search('a number that one page has', word.unique),
    search('a prefix of a tenth of the pages', 'inv'),
    search('a part of a frequent word', word.part),
    search('a phrase', `"${word.common} ${word.frequent}"`),
    search('a word without another', `${word.medium} -${word.common}`),
    search('a word that nothing has', 'zzzzzzz'),
  ]
}

const comms: Record<string, Make> = {
  '/api/v1/comms/status': by(['admin']),
  '/api/v1/comms/sends': () => [
    admin(),
    ...values('admin', 'status', SEND_STATUSES, SHORT),
    ...values('admin', 'channel', ['email', 'sms', 'call'], SHORT),
    admin({ what: 'failed calls', query: { channel: 'call', status: 'failed', limit: 10 } }),
    admin({ what: 'of a day', query: { ...ofDays(50, 49), limit: 10 } }),
    admin({ what: 'oldest first', query: { sort: 'created_at', ...SHORT.query } }),
    admin({ what: 'calls of some days', query: { ...ofDays(50, 30), channel: 'call', limit: 10 } }),
  ],
  '/api/v1/comms/sends/:id': ({ send }) => [admin({ params: { id: send } })],
  '/api/v1/comms/suppressions': () => [admin(SHORT)],
  '/api/v1/comms/templates': () => [admin(SHORT)],
  '/api/v1/comms/templates/:name': () => [admin({ params: { name: 'template-1' } })],
  '/api/v1/comms/domains': by(['admin']),
}

const jobs: Record<string, Make> = {
  '/api/v1/jobs': () =>
    (['admin', 'big', 'small'] as const).flatMap((who) => [
      { who },
      ...values(who, 'status', ['queued', 'running', 'done', 'failed', 'cancelled']),
      ...values(who, 'sort', ['created_at', '-created_at'], SHORT),
      { who, what: 'of the last hours', query: { ...ofDays(0.2, 0), ...SHORT.query } },
    ]),
  '/api/v1/jobs/search': () => [
    admin(),
    admin({ what: 'from the oldest on', query: { sort: 'created_at' } }),
    admin({ what: 'the longest runs', query: { sort: '-ran' } }),
    admin({ what: 'a text that none has', query: { search: 'no such text' } }),
    ...values('admin', 'status', ['queued', 'failed', 'done']),
  ],
  '/api/v1/jobs/failures': () => [admin(), admin({ what: 'of a week', query: { seconds: 604_800 } })],
  '/api/v1/jobs/:job_id': ({ job }) => [big({ params: { job_id: job.ended } })],
  '/api/v1/jobs/:job_id/history': ({ job }) => [big({ params: { job_id: job.ended } })],
  '/api/v1/jobs/:job_id/details': ({ job }) => [
    big({ what: 'of an ended job', params: { job_id: job.ended } }),
    big({ what: 'of a waiting job', params: { job_id: job.waiting } }),
  ],
  '/api/v1/jobs/events': everybody,
  '/api/v1/jobs/overview/events': by(['admin'], { restMs: 1100 }),
  '/api/v1/jobs/:job_id/events': ({ job }) => [
    big({ what: 'of an ended job', params: { job_id: job.ended } }),
    big({ what: 'of a waiting job', params: { job_id: job.waiting } }),
    big({ what: 'of a running job', params: { job_id: job.running } }),
  ],
  '/api/v1/queues': () => values('admin', 'window', ['10m', '1h', '24h', '7d']),
  '/api/v1/system/tables': by(['admin']),
  '/api/v1/system/spending': () => [admin(), admin({ what: 'of a year', query: { days: 366 } })],
  '/api/v1/schedules': by(['admin']),
  '/api/v1/tasks': by(['big']),
  '/api/v1/tasks/result/:task_id': ({ job }) => [big({ params: { task_id: job.named } })],
}

const PAID = ['succeeded', 'pending', 'failed', 'refunded', 'partially_refunded', 'canceled']
const payments: Record<string, Make> = {
  '/api/v1/payment/catalog': by(['big']),
  '/api/v1/payment/transactions': ({ total }) => [
    ...ends('big', total.transactions),
    ...values('big', 'status', PAID),
    ...values('big', 'sort', ['created_at', 'amount', '-amount']),
    big({ what: 'refunded ones by amount', query: { status: 'refunded', sort: '-amount' } }),
    big({ what: 'of some days', query: ofDays(100, 90) }),
    small(),
  ],
  '/api/v1/payment/transactions/:id': ({ transaction }) => [big({ params: { id: transaction } })],
  '/api/v1/payment/subscriptions': () => [big(), ...values('big', 'status', ['active', 'unpaid']), small()],
  '/api/v1/payment/disputes': () => [big(), ...values('big', 'status', ['open', 'lost']), small()],
  '/api/v1/payment/disputes/:id': ({ dispute }) => [big({ params: { id: dispute } })],
  '/api/v1/payment/status': by(['big', 'small']),
  '/api/v1/payment/revenue-timeseries': () => [
    big({ what: 'of 30 days', query: { days: 30 } }),
    big({ what: 'of 365 days', query: { days: 365 } }),
    small({ what: 'of 365 days', query: { days: 365 } }),
  ],
}

const ai: Record<string, Make> = {
  '/api/v1/ai/chat/stream': by(['small'], { query: { message: 'Hm?' } }),
  '/api/v1/ai/chat/stream/:message_id': ({ message }) => [big({ params: { message_id: message } })],
  '/api/v1/ai/conversations': () => [
    big(),
    small(),
    ...values('big', 'sort', ['updated_at'], SHORT),
    big({ what: 'of some days', query: { ...ofDays(30, 20), ...SHORT.query } }),
    admin({ what: 'of the big owner', query: { user_id: 2 } }),
  ],
  '/api/v1/ai/conversations/:conversation_id': ({ conversation }) => [
    big({ params: { conversation_id: conversation.big } }),
    big({ what: 'the longest', params: { conversation_id: conversation.longest } }),
    small({ params: { conversation_id: conversation.small } }),
  ],
  '/api/v1/ai/agents': everybody,
  '/api/v1/ai/usage/stats': () => [
    admin(),
    admin({ what: 'of a day', query: { start_time: new Date(Date.now() - 86_400_000).toISOString() } }),
    big(),
    small(),
  ],
  '/api/v1/ai/sentiment/stats': everybody,
  '/api/v1/ai/health': by(['admin']),
  '/ai/version': anybody,
}

const models: Record<string, Make> = {
  '/llm/status': everybody,
  '/llm/vendors': by(['big']),
  '/llm/modalities': by(['big']),
  '/llm/models': () => [
    big({ what: 'the most', query: { limit: 200 } }),
    big({ what: 'of a pattern', query: { pattern: 'gpt' } }),
    big({ what: 'of no pattern that there is', query: { pattern: 'zzzz' } }),
  ],
  '/llm/prices': ({ model }) => [big({ query: model })],
  '/llm/current': by(['big']),
  '/rag/collections': by(['big']),
  '/rag/collections/:name': by(['big'], { params: { name: 'collection-1' } }),
  '/rag/collections/:name/files': by(['big'], { params: { name: 'collection-1' }, ...SHORT }),
  '/rag/health': by(['big']),
}

const ofOpenAi = by(['big'], { params: { provider_id: 'openai' } })
const voice: Record<string, Make> = {
  '/voice/catalog/tts/providers': by(['big']),
  '/voice/catalog/tts/:provider_id/models': ofOpenAi,
  '/voice/catalog/tts/:provider_id/voices': ofOpenAi,
  '/voice/catalog/stt/providers': by(['big']),
  '/voice/catalog/stt/:provider_id/models': ofOpenAi,
  '/voice/catalog/summary': by(['big']),
  '/voice/settings': by(['big']),
  '/voice/preview/:voice_id': by(['big'], { params: { voice_id: 'alloy' } }),
  '/voice/transcriptions': () => [admin(SHORT), big(SHORT), small(SHORT)],
  '/voice/transcriptions/:transcription_id': ({ transcription }) => [
    big({ params: { transcription_id: transcription } }),
  ],
}

const pages: Record<string, Make> = {
  '/': anybody,
  '/monitor': anybody,
  '/monitor/jobs': anybody,
  '/monitor/jobs/:job_id': ({ job }) => [nobody({ params: { job_id: job.ended } })],
  '/monitor/schedules': anybody,
  '/monitor/documents': anybody,
  '/monitor/documents/:id': ({ document }) => [nobody({ params: { id: document.big } })],
  '/monitor/usage': anybody,
  '/setup': anybody,
  '/verify-email': anybody,
  '/email-change': anybody,
  '/email-change/refuse': anybody,
  '/password-reset': anybody,
  '/accept-invite': anybody,
  '/payment/success': anybody,
  '/payment/cancel': anybody,
  '/pages/:file': by(['nobody'], { params: { file: 'page.css' } }),
  '/pages/monitor/:file': by(['nobody'], { params: { file: 'main.js' } }),
  '/health': anybody,
  '/ready': anybody,
  '/metrics': by(['nobody'], { headers: { authorization: `Bearer ${METRICS_TOKEN}` }, restMs: 1100 }),
  '/openapi.json': anybody,
  '/docs': anybody,
  '/docs/:file': by(['nobody'], { params: { file: 'docs.css' } }),
}

/** Requests of each GET route, by its declared path. */
export const REQUESTS: Readonly<Record<string, Make>> = {
  ...accounts,
  ...organizations,
  ...webhooks,
  ...blog,
  ...documents,
  ...comms,
  ...jobs,
  ...payments,
  ...ai,
  ...models,
  ...voice,
  ...pages,
}
