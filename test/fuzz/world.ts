import { after } from 'node:test'
import type { TestDatabase } from '../database.ts'
import { startProviderStandIns } from '../edge/comms-help.ts'
import { startEdge } from '../edge/harness.ts'
import { RowFactory } from '../edge/matrix-world.ts'
import { createFolder, writeFiles } from '../edge/rag-help.ts'
import { WEBHOOK_SECRET } from '../payment-events.ts'
import { type Child, startProcess } from '../service.ts'
import { startModelServer } from '../standins/models.ts'
import { createPlausibleList, startModelsDev } from '../standins/models-dev.ts'
import { startSpeechServer } from '../standins/speech.ts'
import { KEY, startStripe } from '../stripe.ts'
import type { Credentials } from './client.ts'

/** The service under test consists of real processes, rows of every kind, and stand-ins for the providers. */

export interface Seeds {
  readonly accounts: readonly number[]
  readonly emails: readonly string[]
  readonly orgs: readonly number[]
  readonly invites: readonly number[]
  readonly tokens: readonly string[]
  readonly sessions: readonly string[]
  readonly posts: readonly number[]
  readonly slugs: readonly string[]
  readonly tags: readonly number[]
  readonly documents: readonly number[]
  readonly jobs: readonly string[]
  readonly sends: readonly string[]
  readonly conversations: readonly string[]
  readonly messages: readonly string[]
  readonly transactions: readonly number[]
  readonly subscriptions: readonly number[]
  readonly disputes: readonly number[]
  readonly collections: readonly string[]
}

export interface Service {
  readonly edge: Child
  readonly worker: Child
  readonly seeds: Seeds
  readonly callers: Credentials
}

// Generated requests use low ids. High ids keep callers from changing their own accounts.
const FIRST_CALLER_ID = 900_001

/** Starts the service, which stops after the test file. Call it at the top of the file. */
export async function startService(database: TestDatabase, rows: number): Promise<Service> {
  const { url, query } = database
  const children: Child[] = []
  // Registered before the stand-ins start, so that the processes stop before the stand-ins.
  after(() => Promise.all(children.map((child) => child.kill())))
  const env = await startStandIns()
  // This edge runs in this process and signs long-lived tokens, which all processes accept.
  const api = await startEdge(url, { env: { ...env, ACCESS_TOKEN_MINUTES: '1440' } })
  await query(`alter table account alter column id restart with ${FIRST_CALLER_ID}`)
  const world = await RowFactory.make(api, database)
  await query('alter table account alter column id restart with 1')
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  const callers = {
    nobody: {},
    owner: bearer(world.owner.token),
    other: bearer(world.other.token),
    moderator: bearer(world.moderator.token),
    admin: bearer(world.admin.token),
    cookie: { cookie: `millrace_session=${world.owner.token}` },
    stranger: bearer('no.such.token'),
  }
  // Seed before a worker exists, which would run the jobs.
  const seeds = await seed(world, rows)
  const [edge, worker] = await Promise.all([
    startProcess('edge', url, env),
    startProcess('worker', url, { ...env, WORKER_THREADS: '2' }),
  ])
  children.push(edge, worker)
  return { edge, worker, callers, seeds }
}

async function startStandIns(): Promise<Record<string, string>> {
  const [outside, models, speech, list, stripe] = await Promise.all([
    startProviderStandIns(),
    startModelServer(),
    startSpeechServer(),
    startModelsDev(),
    startStripe(),
  ])
  after(() => models.stop())
  const text = JSON.stringify(createPlausibleList())
  list.answer = (response) => response.end(text)
  stripe.account.prices.push({
    id: 'price_1',
    object: 'price',
    active: true,
    currency: 'usd',
    unit_amount: 500,
  })
  const root = createFolder()
  writeFiles(root, {
    'a.md': '# Mills\n\nGrain is ground between stones.\n',
    'more/b.txt': 'A race leads water to the wheel.\n',
    'c.html': '<h1>Wheels</h1><p>Of oak.',
  })
  return {
    ...outside.env,
    DATA_DIR: createFolder(),
    LOG_LEVEL: 'warn',
    REQUEST_WAIT_SECONDS: '20',
    // A slow read would fail its request, but here only a slow machine makes reads slow.
    READ_TIMEOUT_SECONDS: '60',
    LIST_TIMEOUT_SECONDS: '60',
    SEARCH_TIMEOUT_SECONDS: '60',
    STATISTICS_TIMEOUT_SECONDS: '60',
    RATE_LIMIT_LOGIN: '0',
    RATE_LIMIT_REGISTER: '0',
    RATE_LIMIT_PASSWORD_RESET: '0',
    RATE_LIMIT_INVITE: '0',
    MAX_STREAMS_PER_ADDRESS: '0',
    MAX_STREAMS_PER_ACCOUNT: '0',
    LOGIN_MAX_FAILURES: '1000',
    VISION_PROVIDER: 'none',
    RAG_ROOT: root,
    RAG_EMBEDDINGS: 'lexical',
    AI_PROVIDER: 'mistral',
    MISTRAL_API_KEY: 'key of mistral',
    MISTRAL_BASE_URL: models.url,
    OPENAI_API_KEY: 'sk-test',
    OPENAI_BASE_URL: speech.url,
    LLM_CATALOG_URL: list.url,
    PROVIDER_SECRET_KEY: KEY,
    PROVIDER_WEBHOOK_SECRET: WEBHOOK_SECRET,
    PROVIDER_API_BASE_URL: stripe.url,
  }
}

async function seed(world: RowFactory, n: number): Promise<Seeds> {
  const many = async <T>(make: () => Promise<T>, count = n): Promise<T[]> => {
    const made: T[] = []
    for (let i = 0; i < count; i++) made.push(await make())
    return made
  }
  const accounts = await many(() => world.createAccount())
  const orgs = await many(() => world.createOrg())
  const invites = await many(() => world.createInvite(orgs[0]!))
  const own: string[] = []
  for (const org of orgs) own.push((await world.createInvite(org, world.owner.email)).token)
  const mailed = await many(() => world.createMailedToken('verify', accounts[0]!.id))
  const resets = await many(() => world.createMailedToken('reset', accounts[1]!.id))
  const posts = await many(() => world.createPost())
  const drafts = await many(() => world.createPost('draft'))
  const all = [...posts, ...drafts]
  const conversations = await many(() => world.createConversation())
  const owned = await many(() => world.createTask(world.owner.id))
  const failed = await many(() => world.createFailedJob(world.owner.id))
  return {
    // These two are members of every organization, so repeat their ids to pick them often.
    accounts: [
      ...accounts.map(({ id }) => id),
      ...Array(5).fill([world.orgAdmin.id, world.member.id]).flat(),
    ],
    emails: accounts.map(({ email }) => email),
    orgs: [...orgs, ...Array(n).fill(orgs[0])],
    invites: invites.map(({ id }) => id),
    tokens: [...invites.map(({ token }) => token), ...own, ...mailed, ...resets],
    sessions: await many(async () => (await world.createSession(world.owner.id)).id),
    posts: all.map(({ id }) => id),
    slugs: all.map(({ slug }) => slug),
    tags: await many(() => world.createTag()),
    documents: await many(() => world.createDocument()),
    jobs: [...owned, ...failed, ...(await many(() => world.createTask(null)))],
    sends: await many(() => world.createMessage()),
    conversations: conversations.map(({ id }) => id),
    messages: conversations.map(({ message }) => message),
    transactions: await many(() => world.createTransaction()),
    subscriptions: await many(() => world.createSubscription()),
    disputes: await many(() => world.createDispute()),
    collections: await many(() => world.createCollection()),
  }
}
