import type { SlowStatements } from '../../sql/connections/slow.ts'
import type { Database } from '../../sql/db.ts'
import type { Providers } from '../../tasks/context.ts'
import type { Settings } from '../../tasks/platform/settings/settings.ts'
import { createRetrieval } from '../../tasks/rag/retrieval.ts'
import { bindChildrenToOwner } from '../children/client.ts'
import type { Children } from '../children/ports.ts'
import type { ModelStarts } from './ai/ai-calls.ts'
import { createChat } from './ai/chat.ts'
import { createEmbedder } from './ai/embeddings.ts'
import { readModelList } from './ai/model-list.ts'
import { createComms } from './comms/comms.ts'
import { createMailer } from './comms/email.ts'
import { createOpenIdProvider } from './openid.ts'
import { createPayments } from './payments/payments.ts'
import { createStartLimits, type StartLimits } from './start-limit.ts'
import { createCutter } from './voice/cutting.ts'
import { createSpeaker } from './voice/speech.ts'
import { createTranscriber } from './voice/transcription.ts'
import { createWebhookPoster } from './webhooks.ts'

/** The job for which providers are created. */
export interface ProviderUser {
  /** Account id; 0 for none. */
  readonly owner: number
  /** True if a person waits for the job: its calls of models start before those of others. */
  readonly isUrgent: boolean
}

/**
 * Creates the configured providers for jobs. Child processes parse all untrusted input. The modules that use them are
 * loaded with the first file. `db` keeps the rates of providers.
 */
export function createProviders(
  settings: Settings,
  children: Children,
  db: Pick<Database, 'one'>,
  databaseUrl = settings.databaseUrl ?? '',
  slowStatements?: SlowStatements,
): (user: ProviderUser) => Providers {
  const limits = createStartLimits(settings, db)
  const models = createModels(settings, limits)
  const urgentModels = limits.models === null ? models : createModels(settings, limits, true)
  const shared = {
    payments: createPayments(settings),
    openId: createOpenIdProvider(settings),
    comms: createComms(settings, createMailer(settings, {}, limits.email), limits),
    retrieval: createRetrieval({
      url: databaseUrl,
      applicationName: `${settings.projectName}-task-search`,
      validateRows: settings.validateSchemas,
      pooled: settings.databasePooled,
      readTimeoutMs: settings.slowReadMs.search,
      writeTimeoutMs: settings.writeTimeoutMs,
      slowStatements,
    }),
    readModelList,
    postWebhook: createWebhookPoster(settings),
  } satisfies Partial<Providers>
  return ({ owner, isUrgent }) => ({
    ...shared,
    ...(isUrgent ? urgentModels : models),
    ...createReaders(settings, bindChildrenToOwner(children, owner), limits),
  })
}

/** Creates the clients of models. Recordings and texts in pieces wait for their starts, because a new attempt cuts again. */
function createModels(settings: Settings, { models: limits }: StartLimits, isUrgent = false) {
  const starts: ModelStarts = { limits, wait: isUrgent ? 'first' : 'release' }
  const pieceStarts: ModelStarts = { limits, wait: isUrgent ? 'first' : 'stay' }
  return {
    chat: createChat(settings, starts),
    embed: createEmbedder(settings, starts),
    speech: createSpeaker(settings, pieceStarts),
    transcription: createTranscriber(settings, pieceStarts),
  } satisfies Partial<Providers>
}

const createReaders = (
  { visionProvider: vision, visionPictures, ocrLanguages, maxDocumentPages: maxPages }: Settings,
  children: Children,
  { models: limits }: StartLimits,
): Pick<Providers, 'openPages' | 'renderPage' | 'placeWords' | 'readPosts' | 'analyze' | 'cutter'> => ({
  openPages: async (load, { languages = ocrLanguages, ...options }) =>
    (await import('./documents/documents.ts')).openDocument(children, load, {
      ...options,
      languages,
      vision,
      starts: { limits, wait: 'stay' },
      withPictures: visionPictures === 'auto',
      maxPages,
    }),
  renderPage: async (bytes, page, options) =>
    (await import('./documents/draw.ts')).drawPage(children, bytes, page, { ...options, maxPages }),
  placeWords: async (bytes, page, options) =>
    (await import('./documents/draw.ts')).findWords(children, bytes, page, { ...options, maxPages }),
  readPosts: async (name, format, bytes, signal) =>
    (await import('./documents/posts.ts')).openPosts(children, { name, format, bytes }, { signal }),
  cutter: createCutter(children),
  analyze: async (bytes, file, signal) =>
    (await import('./documents/analysis.ts')).analyzeFile(children, bytes, file, signal),
})
