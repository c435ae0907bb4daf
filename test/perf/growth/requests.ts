import declaredPages from '../../../edge/pages/pages.json' with { type: 'json' }
import { SEND_STATUSES } from '../../../sql/comms/sends.ts'
import { MAX_COUNTED_ROWS } from '../../../sql/reads/lists.ts'
import { previewTokenOf } from '../../../tasks/blog/previews.ts'
import { METRICS_TOKEN } from '../../every-service.ts'
import { TEST_KEYS } from '../../keys.ts'
import type { Targets } from './targets.ts'

/** Callers and arguments for each GET route, both usual and most expensive ones. */

export type Who = 'admin' | 'big' | 'small' | 'nobody'

export interface RouteRequest {
  readonly who: Who
  /** Distinguishes the requests of a route. It must be the same at every size. */
  readonly variant?: string
  readonly params?: Readonly<Record<string, string | number>>
  readonly query?: Readonly<Record<string, string | number | boolean>>
  readonly headers?: Readonly<Record<string, string>>
  /** Pause in ms between two requests, for routes whose answers the edge caches. */
  readonly pauseMs?: number
}
type RequestMaker = (places: Targets) => readonly RouteRequest[]

const PAGE = 20
// Lists count up to MAX_COUNTED_ROWS rows; only cursors lead further.
const lastPage = (total: number): number => Math.max(1, Math.ceil(Math.min(total, MAX_COUNTED_ROWS) / PAGE))

/** Makes the same request for each caller. */
const byCallers =
  (whos: readonly Who[], more: Omit<RouteRequest, 'who'> = {}): RequestMaker =>
  () =>
    whos.map((who) => ({ who, ...more }))
const big = (more: Omit<RouteRequest, 'who'> = {}): RouteRequest => ({ who: 'big', ...more })
const small = (more: Omit<RouteRequest, 'who'> = {}): RouteRequest => ({ who: 'small', ...more })
const admin = (more: Omit<RouteRequest, 'who'> = {}): RouteRequest => ({ who: 'admin', ...more })
const nobody = (more: Omit<RouteRequest, 'who'> = {}): RouteRequest => ({ who: 'nobody', ...more })

/** Makes requests for the first and the last page. */
const firstAndLastPage = (who: Who, total: number, more: Omit<RouteRequest, 'who'> = {}): RouteRequest[] =>
  [1, lastPage(total)].map((page, i) => ({
    who,
    ...more,
    variant: [more.variant, i === 0 ? 'first page' : 'last page'].filter(Boolean).join(', '),
    query: { ...more.query, page_size: PAGE, page },
  }))
/** Makes one request for each value of a parameter. */
const forEachValue = (
  who: Who,
  name: string,
  given: readonly string[],
  more: Omit<RouteRequest, 'who'> = {},
): RouteRequest[] =>
  given.map((value) => ({
    who,
    ...more,
    variant: `${name}=${value}`,
    query: { ...more.query, [name]: value },
  }))

const byAnonymous: RequestMaker = byCallers(['nobody'])
const byEachAccount: RequestMaker = byCallers(['admin', 'big', 'small'])

// Even the smallest table has this many rare rows.
const SHORT_PAGE = { query: { limit: 10 } }

const daysAgo = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString()
/** Returns the parameters of a time range, from `from` to `to` days ago. */
const dayRange = (from: number, to: number) => ({ from: daysAgo(from), to: daysAgo(to) })

const accounts: Record<string, RequestMaker> = {
  '/api/v1/auth/me': byEachAccount,
  '/api/v1/auth/me/email': byEachAccount,
  '/api/v1/auth/me/quotas': byCallers(['big', 'small']),
  '/api/v1/auth/me/export': byCallers(['admin', 'big', 'small'], SHORT_PAGE),
  '/api/v1/auth/me/export/:id': ({ exported }) => [big({ params: { id: exported } })],
  '/api/v1/auth/sessions': byCallers(['admin', 'big', 'small'], SHORT_PAGE),
  '/api/v1/auth/keys': () => [
    ...[admin, big, small].map((one) => one(SHORT_PAGE)),
    big({ variant: 'of an organization', query: { ...SHORT_PAGE.query, organization_id: 1 } }),
  ],
  '/api/v1/auth/passkeys': byCallers(['admin', 'big', 'small'], SHORT_PAGE),
  '/api/v1/auth/totp': byEachAccount,
  '/api/v1/auth/sign-in': byAnonymous,
  '/api/v1/auth/oidc': byAnonymous,
  '/api/v1/auth/me/identities': byEachAccount,
  '/api/v1/auth/users': ({ total }) => [
    ...firstAndLastPage('admin', total.accounts),
    ...forEachValue('admin', 'sort', ['created_at', 'email', '-email', '-last_login'], SHORT_PAGE),
    ...forEachValue('admin', 'role', ['user', 'admin'], { query: { page_size: 1 } }),
    admin({ variant: 'inactive ones by address', query: { is_active: false, sort: 'email' } }),
    admin({ variant: 'of a day', query: { ...dayRange(100, 99), page_size: 1 } }),
    admin({ variant: 'search, an address', query: { search: 'person-50@' } }),
    admin({ variant: 'search, what many have', query: { search: 'example', ...SHORT_PAGE.query } }),
    admin({ variant: 'search without matches', query: { search: 'zzzzzzz', sort: 'email' } }),
  ],
  '/api/v1/auth/users/:user_id': byCallers(['admin'], { params: { user_id: 3 } }),
  '/api/v1/auth/users/:user_id/quotas': byCallers(['admin'], { params: { user_id: 2 } }),
  '/api/v1/auth/audit': ({ total }) => [
    ...firstAndLastPage('admin', total.audit),
    ...forEachValue('admin', 'kind', ['account.signed_in', 'member.added', 'session.replayed']),
    admin({ variant: 'of the big account', query: { account_id: 2 } }),
    admin({ variant: 'of the small account', query: { account_id: 3 } }),
    admin({ variant: 'of an organization', query: { organization_id: 1 } }),
    admin({ variant: 'of a kind and an account', query: { account_id: 2, kind: 'account.updated' } }),
    admin({ variant: 'of an hour', query: dayRange(100, 100 - 1 / 24) }),
    admin({
      variant: 'of some weeks and a kind, oldest first',
      query: { ...dayRange(130, 100), kind: 'member.added', sort: 'at' },
    }),
  ],
}

const webhooks: Record<string, RequestMaker> = {
  '/api/v1/webhooks': () => [
    ...[admin, big, small].map((one) => one(SHORT_PAGE)),
    big({ variant: 'of an organization', query: { ...SHORT_PAGE.query, organization_id: 1 } }),
  ],
  '/api/v1/webhooks/:endpoint_id': byCallers(['admin', 'big'], { params: { endpoint_id: 1 } }),
  '/api/v1/webhooks/:endpoint_id/deliveries': () => [
    big({ params: { endpoint_id: 1 } }),
    ...forEachValue('big', 'status', ['pending', 'delivered', 'failed'], { params: { endpoint_id: 1 } }),
  ],
  '/api/v1/webhooks/:endpoint_id/deliveries/:delivery_id': byCallers(['big'], {
    params: { endpoint_id: 1, delivery_id: 1 },
  }),
}

const ofOrganization = (members: (places: Targets) => number): RequestMaker => {
  const params = { org_id: 1 }
  return (places) => [
    ...firstAndLastPage('big', members(places), { params }),
    small({ variant: 'of a small one', params: { org_id: 2 } }),
  ]
}
const organizations: Record<string, RequestMaker> = {
  '/api/v1/orgs': byEachAccount,
  '/api/v1/orgs/all': ({ total }) => firstAndLastPage('admin', total.organizations),
  '/api/v1/orgs/memberships': ({ total }) => firstAndLastPage('admin', total.memberships),
  '/api/v1/orgs/:org_id': byCallers(['big'], { params: { org_id: 1 } }),
  '/api/v1/orgs/:org_id/members': ofOrganization(({ total }) => total.members),
  '/api/v1/orgs/:org_id/members/details': ofOrganization(({ total }) => total.members),
  '/api/v1/orgs/:org_id/invites': ofOrganization(({ total }) => total.invites),
}

const blog: Record<string, RequestMaker> = {
  '/api/v1/blog/posts': ({ total, rareTag, word }) => [
    ...firstAndLastPage('nobody', total.published),
    nobody({ variant: 'of a common tag', query: { tag: 'tag-1' } }),
    nobody({ variant: 'of a rare tag', query: { tag: rareTag } }),
    nobody({ variant: 'search, a rare word', query: { search: word.rare } }),
    nobody({ variant: 'search, a frequent word of a tag', query: { search: word.frequent, tag: 'tag-1' } }),
    nobody({ variant: 'search without matches', query: { search: 'zzzzzzz' } }),
  ],
  '/api/v1/blog/posts/:post': ({ post }) => [
    nobody({ params: { post } }),
    nobody({ variant: 'a former slug', params: { post: 'former-1' } }),
  ],
  '/api/v1/blog/posts/:post/revisions': byCallers(['admin'], { params: { post: 1 } }),
  '/api/v1/blog/posts/:post/revisions/:revision': byCallers(['admin'], { params: { post: 1, revision: 1 } }),
  '/api/v1/blog/preview/:token': byCallers(['nobody'], { params: { token: previewTokenOf(TEST_KEYS, 1) } }),
  '/api/v1/blog/feed.xml': () => [nobody(), nobody({ variant: 'of a tag', query: { tag: 'tag-1' } })],
  '/api/v1/blog/atom.xml': byAnonymous,
  '/api/v1/blog/feed.json': byAnonymous,
  '/api/v1/blog/sitemap.xml': byAnonymous,
  '/api/v1/blog/admin/posts': ({ total, word }) => [
    ...firstAndLastPage('admin', total.posts),
    ...forEachValue('admin', 'status', ['draft', 'published', 'archived']),
    admin({ variant: 'drafts of a common tag', query: { tag: 'tag-1', status: 'draft' } }),
    admin({ variant: 'search, a common word of drafts', query: { search: word.common, status: 'draft' } }),
  ],
  '/api/v1/blog/admin/posts/:post': byCallers(['admin'], { params: { post: 1 } }),
  '/api/v1/blog/tags': () => [
    nobody({ variant: 'the most' }),
    nobody({ variant: 'on a small page', query: { page_size: 10 } }),
  ],
  '/api/v1/blog/export': byCallers(['admin'], {
    variant: 'the whole of it',
    query: { format: 'json' },
  }),
}

const PATH = '/api/v1/documents'
const documents: Record<string, RequestMaker> = {
  [PATH]: ({ total, word }) => [
    ...firstAndLastPage('big', total.documents),
    big({ variant: 'of a kind', query: { kind: 'contract' } }),
    big({ variant: 'of no kind that there is', query: { kind: 'nothing' } }),
    big({ variant: 'of a common tag', query: { tag: 'tag-2' } }),
    big({ variant: 'of a rare tag', query: { tag: 'tag-199' } }),
    big({ variant: 'with superseded ones', query: { include_superseded: true } }),
    big({ variant: 'on a large page', query: { page_size: 200 } }),
    ...firstAndLastPage('big', total.trashed, { variant: 'trashed', query: { trashed: true } }),
    small(),
    small({ variant: 'of a kind', query: { kind: 'contract' } }),
    small({ variant: 'of a common tag', query: { tag: 'tag-2' } }),
    ...(['big', 'small'] as const).flatMap((who) => searches(who, word)),
  ],
  [`${PATH}/tags`]: byCallers(['big', 'small']),
  [`${PATH}/:id`]: ({ document }) => [
    big({ params: { id: document.big } }),
    small({ params: { id: document.small } }),
  ],
  [`${PATH}/:id/content`]: ({ document }) => [big({ params: { id: document.big } })],
  [`${PATH}/:id/extraction`]: ({ document }) => [big({ params: { id: document.big } })],
  [`${PATH}/:id/pages`]: ({ document }) => [
    big({ params: { id: document.big } }),
    big({ variant: 'of the longest document', params: { id: document.longest } }),
  ],
  [`${PATH}/:id/pages/:number`]: ({ document }) => [big({ params: { id: document.big, number: 1 } })],
  [`${PATH}/:id/pages/:number/image`]: ({ document }) => [
    big({ params: { id: document.pictured, number: 1 } }),
  ],
  [`${PATH}/:id/pages/:number/words`]: ({ document }) => [
    big({ params: { id: document.pictured, number: 1 }, query: { search: '-' } }),
  ],
}
function searches(who: Who, word: Targets['word']): RouteRequest[] {
  const search = (what: string, text: string): RouteRequest => ({
    who,
    variant: `search, ${what}`,
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

const comms: Record<string, RequestMaker> = {
  '/api/v1/comms/status': byCallers(['admin']),
  '/api/v1/comms/sends': () => [
    admin(),
    ...forEachValue('admin', 'status', SEND_STATUSES, SHORT_PAGE),
    ...forEachValue('admin', 'channel', ['email', 'sms', 'call'], SHORT_PAGE),
    admin({ variant: 'failed calls', query: { channel: 'call', status: 'failed', limit: 10 } }),
    admin({ variant: 'of a day', query: { ...dayRange(50, 49), limit: 10 } }),
    admin({ variant: 'oldest first', query: { sort: 'created_at', ...SHORT_PAGE.query } }),
    admin({ variant: 'calls of some days', query: { ...dayRange(50, 30), channel: 'call', limit: 10 } }),
  ],
  '/api/v1/comms/sends/:id': ({ send }) => [admin({ params: { id: send } })],
  '/api/v1/comms/suppressions': () => [admin(SHORT_PAGE)],
  '/api/v1/comms/templates': () => [admin(SHORT_PAGE)],
  '/api/v1/comms/templates/:name': () => [admin({ params: { name: 'template-1' } })],
  '/api/v1/comms/domains': byCallers(['admin']),
}

const jobs: Record<string, RequestMaker> = {
  '/api/v1/jobs': () =>
    (['admin', 'big', 'small'] as const).flatMap((who) => [
      { who },
      ...forEachValue(who, 'status', ['queued', 'running', 'done', 'failed', 'cancelled']),
      ...forEachValue(who, 'sort', ['created_at', '-created_at'], SHORT_PAGE),
      { who, variant: 'of the last hours', query: { ...dayRange(0.2, 0), ...SHORT_PAGE.query } },
    ]),
  '/api/v1/jobs/search': () => [
    admin(),
    admin({ variant: 'from the oldest on', query: { sort: 'created_at' } }),
    admin({ variant: 'the longest runs', query: { sort: '-ran' } }),
    admin({ variant: 'a text that none has', query: { search: 'no such text' } }),
    ...forEachValue('admin', 'status', ['queued', 'failed', 'done']),
    big(),
    big({ variant: 'the latest to end', query: { sort: '-finished_at', limit: 10 } }),
    small(),
  ],
  '/api/v1/jobs/failures': () => [
    admin(),
    admin({ variant: 'of a week', query: { seconds: 604_800 } }),
    small(),
  ],
  '/api/v1/jobs/:job_id': ({ job }) => [big({ params: { job_id: job.ended } })],
  '/api/v1/jobs/:job_id/history': ({ job }) => [big({ params: { job_id: job.ended } })],
  '/api/v1/jobs/:job_id/details': ({ job }) => [
    big({ variant: 'of an ended job', params: { job_id: job.ended } }),
    big({ variant: 'of a waiting job', params: { job_id: job.waiting } }),
  ],
  '/api/v1/jobs/events': (places) => [
    ...byEachAccount(places),
    big({ variant: 'of named jobs', query: { ids: `${places.job.waiting},${places.job.ended}` } }),
    big({ variant: 'of a queue', query: { queue: 'load_test' } }),
  ],
  '/api/v1/jobs/overview': byCallers(['admin'], { pauseMs: 1100 }),
  '/api/v1/jobs/overview/events': byCallers(['admin'], { pauseMs: 1100 }),
  '/api/v1/jobs/:job_id/events': ({ job }) => [
    big({ variant: 'of an ended job', params: { job_id: job.ended } }),
    big({ variant: 'of a waiting job', params: { job_id: job.waiting } }),
    big({ variant: 'of a running job', params: { job_id: job.running } }),
  ],
  '/api/v1/queues': () => [
    ...forEachValue('admin', 'window', ['10m', '1h', '24h', '7d']),
    admin({ variant: 'with times', query: { window: '7d', times: 'true' } }),
  ],
  '/api/v1/system/tables': byCallers(['admin']),
  '/api/v1/system/spending': () => [admin(), admin({ variant: 'of a year', query: { days: 366 } })],
  '/api/v1/batches/:batch_id': ({ job }) => [big({ params: { batch_id: job.batch } })],
  '/api/v1/batches/:batch_id/events': ({ job }) => [big({ params: { batch_id: job.batch } })],
  '/api/v1/batches/:batch_id/jobs': ({ job }) => [
    big({ params: { batch_id: job.batch } }),
    big({ variant: 'that failed', params: { batch_id: job.batch }, query: { status: 'failed' } }),
  ],
  '/api/v1/worker-queues': byEachAccount,
  '/api/v1/worker-queues/:name': ({ queue }) => [big({ params: { name: queue } })],
  '/api/v1/worker-queues/:name/tasks/:task': ({ queue }) => [
    big({ params: { name: queue, task: 'task-1' } }),
  ],
  '/api/v1/schedules': byEachAccount,
  '/api/v1/schedules/:schedule_id': ({ schedule }) => [big({ params: { schedule_id: schedule } })],
  '/api/v1/tasks': byCallers(['big']),
  '/api/v1/tasks/result/:task_id': ({ job }) => [big({ params: { task_id: job.named } })],
  '/api/v1/tasks/results': ({ job }) => [big({ query: { ids: `${job.named},${job.ended}` } })],
}

const PAYMENT_STATUSES = ['succeeded', 'pending', 'failed', 'refunded', 'partially_refunded', 'canceled']
const payments: Record<string, RequestMaker> = {
  '/api/v1/payment/catalog': byCallers(['big']),
  '/api/v1/payment/transactions': ({ total }) => [
    ...firstAndLastPage('big', total.transactions),
    ...forEachValue('big', 'status', PAYMENT_STATUSES),
    ...forEachValue('big', 'sort', ['created_at', 'amount', '-amount']),
    big({ variant: 'refunded ones by amount', query: { status: 'refunded', sort: '-amount' } }),
    big({ variant: 'of some days', query: dayRange(100, 90) }),
    small(),
  ],
  '/api/v1/payment/transactions/:id': ({ transaction }) => [big({ params: { id: transaction } })],
  '/api/v1/payment/subscriptions': () => [
    big(),
    ...forEachValue('big', 'status', ['active', 'unpaid']),
    small(),
  ],
  '/api/v1/payment/disputes': () => [big(), ...forEachValue('big', 'status', ['open', 'lost']), small()],
  '/api/v1/payment/disputes/:id': ({ dispute }) => [big({ params: { id: dispute } })],
  '/api/v1/payment/admin/transactions': () => [
    admin(),
    ...forEachValue('admin', 'status', ['succeeded', 'failed']),
    admin({ variant: 'by amount', query: { sort: '-amount' } }),
  ],
  '/api/v1/payment/admin/transactions/:id': ({ transaction }) => [admin({ params: { id: transaction } })],
  '/api/v1/payment/admin/subscriptions': () => [admin(), ...forEachValue('admin', 'status', ['unpaid'])],
  '/api/v1/payment/admin/disputes': () => [admin(), ...forEachValue('admin', 'status', ['open'])],
  '/api/v1/payment/admin/disputes/:id': ({ dispute }) => [admin({ params: { id: dispute } })],
  '/api/v1/payment/admin/status': byCallers(['admin']),
  '/api/v1/payment/admin/revenue-timeseries': () => [admin({ variant: 'of 365 days', query: { days: 365 } })],
  '/api/v1/payment/status': byCallers(['big', 'small']),
  '/api/v1/payment/revenue-timeseries': () => [
    big({ variant: 'of 30 days', query: { days: 30 } }),
    big({ variant: 'of 365 days', query: { days: 365 } }),
    small({ variant: 'of 365 days', query: { days: 365 } }),
  ],
}

const ai: Record<string, RequestMaker> = {
  '/api/v1/ai/chat/stream': byCallers(['small'], { query: { message: 'Hm?' } }),
  '/api/v1/ai/chat/stream/:message_id': ({ message }) => [big({ params: { message_id: message } })],
  '/api/v1/ai/conversations': ({ word }) => [
    big(),
    small(),
    ...forEachValue('big', 'sort', ['updated_at'], SHORT_PAGE),
    big({ variant: 'of some days', query: { ...dayRange(30, 20), ...SHORT_PAGE.query } }),
    big({ variant: 'search, a frequent word', query: { search: word.frequent } }),
    admin({ variant: 'of the big owner', query: { user_id: 2 } }),
  ],
  '/api/v1/ai/conversations/:conversation_id': ({ conversation }) => [
    big({ params: { conversation_id: conversation.big } }),
    big({ variant: 'the longest', params: { conversation_id: conversation.longest } }),
    small({ params: { conversation_id: conversation.small } }),
  ],
  '/api/v1/ai/agents': byEachAccount,
  '/v1/models': byEachAccount,
  '/v1/models/:model': () => [big({ params: { model: 'assistant' } })],
  '/api/v1/ai/usage/stats': () => [
    admin(),
    admin({ variant: 'of a day', query: { start_time: new Date(Date.now() - 86_400_000).toISOString() } }),
    big(),
    small(),
  ],
  '/api/v1/ai/usage/budget': byEachAccount,
  '/api/v1/ai/sentiment/stats': byEachAccount,
  '/api/v1/ai/health': byCallers(['admin']),
  '/ai/version': byAnonymous,
}

const models: Record<string, RequestMaker> = {
  '/llm/status': byEachAccount,
  '/llm/vendors': byCallers(['big']),
  '/llm/modalities': byCallers(['big']),
  '/llm/models': () => [
    big({ variant: 'the most', query: { limit: 200 } }),
    big({ variant: 'of a pattern', query: { pattern: 'gpt' } }),
    big({ variant: 'of no pattern that there is', query: { pattern: 'zzzz' } }),
  ],
  '/llm/prices': ({ model }) => [big({ query: model })],
  '/llm/current': byCallers(['big']),
  '/rag/collections': byCallers(['big']),
  '/rag/collections/:name': byCallers(['big'], { params: { name: 'collection-1' } }),
  '/rag/collections/:name/files': byCallers(['big'], { params: { name: 'collection-1' }, ...SHORT_PAGE }),
  '/rag/health': byCallers(['big']),
}

const ofOpenAi = byCallers(['big'], { params: { provider_id: 'openai' } })
const voice: Record<string, RequestMaker> = {
  '/voice/catalog/tts/providers': byCallers(['big']),
  '/voice/catalog/tts/:provider_id/models': ofOpenAi,
  '/voice/catalog/tts/:provider_id/voices': ofOpenAi,
  '/voice/catalog/stt/providers': byCallers(['big']),
  '/voice/catalog/stt/:provider_id/models': ofOpenAi,
  '/voice/catalog/summary': byCallers(['big']),
  '/voice/settings': byCallers(['big']),
  '/voice/speech/:job_id': ({ speech }) => [big({ params: { job_id: speech } })],
  '/voice/preview/:voice_id': byCallers(['big'], { params: { voice_id: 'alloy' } }),
  '/voice/transcriptions': () => [admin(SHORT_PAGE), big(SHORT_PAGE), small(SHORT_PAGE)],
  '/voice/transcriptions/:transcription_id': ({ transcription }) => [
    big({ params: { transcription_id: transcription } }),
  ],
}

const pages: Record<string, RequestMaker> = {
  ...Object.fromEntries(
    declaredPages.map(({ path }) => [
      path,
      byCallers(['nobody'], {
        params: Object.fromEntries([...path.matchAll(/:(\w+)/g)].map(([, name]) => [name!, '1'])),
      }),
    ]),
  ),
  '/setup': byAnonymous,
  '/verify-email': byAnonymous,
  '/email-change': byAnonymous,
  '/email-change/refuse': byAnonymous,
  '/password-reset': byAnonymous,
  '/accept-invite': byAnonymous,
  '/register': byAnonymous,
  '/magic-link': byAnonymous,
  '/oidc': byAnonymous,
  '/unsubscribe': byAnonymous,
  '/payment/success': byAnonymous,
  '/payment/cancel': byAnonymous,
  '/pages/pages.json': byAnonymous,
  '/pages/:folder/:file': byCallers(['nobody'], { params: { folder: 'parts', file: 'base.css' } }),
  '/health': byAnonymous,
  '/ready': byAnonymous,
  '/metrics': byCallers(['nobody'], { headers: { authorization: `Bearer ${METRICS_TOKEN}` }, pauseMs: 1100 }),
  '/openapi.json': byAnonymous,
  '/docs': byAnonymous,
  '/docs/:file': byCallers(['nobody'], { params: { file: 'docs.css' } }),
}

/** Requests of each GET route, by its declared path. */
export const REQUESTS: Readonly<Record<string, RequestMaker>> = {
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
