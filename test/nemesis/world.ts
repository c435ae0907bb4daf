import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { migrate } from '../../sql/server/migrate.ts'
import { Cluster, createMultiHostUrl } from '../cluster.ts'
import { type Link, openUnownedLink } from '../flow/link.ts'
import { WEBHOOK_SECRET } from '../payment-events.ts'
import { type ModelStandIn, startModelServer } from '../standins/models.ts'
import { type Pooler, startPooler } from '../standins/pooler.ts'
import { type MailStandIn, startMailServer } from '../standins/smtp.ts'
import { type SpeechStandIn, startSpeechServer } from '../standins/speech.ts'
import { createTwilioEnv, startTwilio, type TwilioStandIn } from '../standins/twilio.ts'
import { KEY, type StripeStandIn, startStripe } from '../stripe.ts'
import { until } from '../until.ts'
import { Member } from './member.ts'
import type { HttpWorker } from './workers/process.ts'

/** Connections to the database: direct, through a pooler in transaction mode, or to a primary and its standby. */
export const MODES = ['direct', 'pooler', 'standby'] as const
export type Mode = (typeof MODES)[number]

/** Two edges and two workers, with links to their database and stand-ins for all providers. */
export interface World {
  readonly mode: Mode
  readonly cluster: Cluster
  readonly pooler: Pooler | null
  /** All links to the database. */
  readonly links: readonly Link[]
  readonly edges: readonly Member[]
  readonly workers: readonly Member[]
  readonly members: readonly Member[]
  /** Workers that claim jobs over HTTP, which their area adds. */
  readonly httpWorkers: HttpWorker[]
  readonly mail: MailStandIn
  readonly twilio: TwilioStandIn
  readonly models: ModelStandIn
  readonly stripe: StripeStandIn
  readonly speech: SpeechStandIn
  /** Folder whose files may be indexed. */
  readonly ragRoot: string
  /** File system of the database and of uploads; null if tests cannot mount one on this machine. */
  readonly disk: string | null
  /** Ports of the edges that are up. */
  ports(): number[]
  /** Returns rows from the database over a connection that bypasses all links. */
  query(text: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>
  stop(): Promise<void>
}

const DISK_BYTES = 3 * 1024 ** 3
const DAY_SECONDS = '86400'
// Long enough for a machine that other work keeps busy.
const READY_TIMEOUT_MS = 180_000

export async function startWorld(mode: Mode): Promise<World> {
  const folder = mkdtempSync('/dev/shm/millrace-nemesis-')
  const [mail, twilio, models, stripe, speech] = await Promise.all([
    startMailServer(),
    startTwilio(),
    startModelServer(),
    startStripe(),
    startSpeechServer(),
  ])
  const disk = mountDisk(folder)
  const cluster = await Cluster.start(folder)
  const ragRoot = join(folder, 'rag')
  mkdirSync(ragRoot)
  if (mode === 'standby') await cluster.attachStandby()
  await migrate(cluster.primary.url)
  const closings: (() => Promise<void>)[] = []
  const links: Link[] = []
  const linkTo = async (url: string): Promise<Link> => {
    const link = await openUnownedLink(url)
    links.push(link)
    closings.push(link.close)
    return link
  }
  const pooler =
    mode === 'pooler' ? await startPooler({ url: (await linkTo(cluster.primary.url)).url, size: 12 }) : null
  const env = {
    ...createTwilioEnv(twilio.url),
    AI_TIMEOUT_SECONDS: '30',
    BLOB_STORE: `file:${join(folder, 'blobs')}`,
    DATA_DIR: join(folder, 'data'),
    EMAIL_PROVIDER_FROM_EMAIL: 'service@example.com',
    EMAIL_SMTP_URL: mail.url,
    LOG_LEVEL: 'warn',
    AI_PROVIDER: 'groq',
    AI_MODEL: 'llama-3.3-70b-versatile',
    GROQ_API_KEY: 'k',
    GROQ_BASE_URL: models.url,
    OPENAI_API_KEY: 'k',
    OPENAI_BASE_URL: speech.url,
    PROVIDER_API_BASE_URL: stripe.url,
    PROVIDER_SECRET_KEY: KEY,
    PROVIDER_WEBHOOK_SECRET: WEBHOOK_SECRET,
    RAG_EMBEDDINGS: 'lexical',
    RAG_ROOT: ragRoot,
    RATE_LIMIT_LOGIN: '0',
    RATE_LIMIT_REGISTER: '0',
    RATE_LIMIT_PASSWORD_RESET: '0',
    ACCESS_TOKEN_MINUTES: '1440',
    // Long enough to keep all jobs for the final checks.
    WORKER_KEEP_RESULT_SECONDS: DAY_SECONDS,
    WORKER_THREADS: '2',
  }
  const memberOf = async (name: string, kind: Member['kind']): Promise<Member> => {
    const urls = mode === 'standby' ? cluster.urls : [cluster.primary.url]
    const own = await Promise.all(urls.map(linkTo))
    const url = mode === 'standby' ? createMultiHostUrl(own.map((link) => link.url)) : own[0]!.url
    if (pooler === null) return new Member(name, kind, own, url, env)
    return new Member(name, kind, own, pooler.url, { ...env, DATABASE_URL_UNPOOLED: url })
  }
  const members = await Promise.all([
    memberOf('edge 1', 'edge'),
    memberOf('edge 2', 'edge'),
    memberOf('worker 1', 'worker'),
    memberOf('worker 2', 'worker'),
  ])
  for (const member of members) member.begin()
  const edges = members.filter(({ kind }) => kind === 'edge')
  const workers = members.filter(({ kind }) => kind === 'worker')
  const httpWorkers: HttpWorker[] = []
  const stop = async (): Promise<void> => {
    await Promise.all([...httpWorkers, ...members].map((one) => one.stop()))
    await pooler?.stop()
    await Promise.all(closings.map((close) => close()))
    await cluster.stop()
    await Promise.all([mail.stop(), twilio.stop(), models.stop()])
    if (disk !== null) execFileSync('umount', ['--lazy', folder])
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await until('all processes are ready', () => members.every(({ isUp }) => isUp), READY_TIMEOUT_MS)
  } catch (error) {
    await stop()
    throw error
  }
  return {
    ...{
      mode,
      cluster,
      pooler,
      links,
      edges,
      workers,
      members,
      httpWorkers,
      mail,
      twilio,
      models,
      stripe,
      speech,
      ragRoot,
      disk,
    },
    ports: () => edges.flatMap(({ port }) => port ?? []),
    query: (text, values) => cluster.primary.query(text, values),
    stop,
  }
}

/** Mounts a file system of limited size at the folder, and returns the folder; null if mounting is not allowed. */
function mountDisk(folder: string): string | null {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_BYTES},mode=711`, 'tmpfs', folder], {
      stdio: 'ignore',
    })
    return folder
  } catch {
    return null
  }
}
