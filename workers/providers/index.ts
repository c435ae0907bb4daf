import type { SlowStatements } from '../../sql/connections/slow.ts'
import type { Providers } from '../../tasks/context.ts'
import type { Settings } from '../../tasks/platform/settings/settings.ts'
import { createRetrieval } from '../../tasks/rag/retrieval.ts'
import { bindChildrenToOwner } from '../children/client.ts'
import type { Children } from '../children/ports.ts'
import { createChat } from './ai/chat.ts'
import { createEmbedder } from './ai/embeddings.ts'
import { readModelList } from './ai/model-list.ts'
import { createComms } from './comms/comms.ts'
import { createMailer } from './comms/email.ts'
import { createOpenIdProvider } from './openid.ts'
import { createPayments } from './payments/payments.ts'
import { createCutter } from './voice/cutting.ts'
import { createSpeaker } from './voice/speech.ts'
import { createTranscriber } from './voice/transcription.ts'
import { createWebhookPoster } from './webhooks.ts'

/**
 * Creates the configured providers for the jobs of an owner (0 for none). Child processes parse all untrusted input.
 * The modules that use them are loaded with the first file.
 */
export function createProviders(
  settings: Settings,
  children: Children,
  databaseUrl = settings.databaseUrl ?? '',
  slowStatements?: SlowStatements,
): (owner: number) => Providers {
  const mailer = createMailer(settings)
  const shared = {
    payments: createPayments(settings),
    openId: createOpenIdProvider(settings),
    chat: createChat(settings),
    speech: createSpeaker(settings),
    transcription: createTranscriber(settings),
    comms: createComms(settings, mailer),
    embed: createEmbedder(settings),
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
  return (owner) => ({ ...shared, ...createReaders(settings, bindChildrenToOwner(children, owner)) })
}

const createReaders = (
  { visionProvider: vision, visionPictures, ocrLanguages, maxDocumentPages: maxPages }: Settings,
  children: Children,
): Pick<Providers, 'openPages' | 'renderPage' | 'readPosts' | 'analyze' | 'cutter'> => ({
  openPages: async (load, { languages = ocrLanguages, ...options }) =>
    (await import('./documents/documents.ts')).openDocument(children, load, {
      ...options,
      languages,
      vision,
      withPictures: visionPictures === 'auto',
      maxPages,
    }),
  renderPage: async (bytes, page, options) =>
    (await import('./documents/draw.ts')).drawPage(children, bytes, page, { ...options, maxPages }),
  readPosts: async (name, format, bytes, signal) =>
    (await import('./documents/posts.ts')).openPosts(children, { name, format, bytes }, { signal }),
  cutter: createCutter(children),
  analyze: async (bytes, file, signal) =>
    (await import('./documents/analysis.ts')).analyzeFile(children, bytes, file, signal),
})
