import type { Providers } from '../../tasks/context.ts'
import { createRetrieval } from '../../tasks/rag/retrieval.ts'
import type { Settings } from '../../tasks/settings.ts'
import type { Children } from '../children/ports.ts'
import { analyzeFile } from './analysis.ts'
import { createChat } from './chat.ts'
import { createComms } from './comms.ts'
import { drawPage, openDocument } from './documents.ts'
import { createMailer } from './email.ts'
import { createEmbedder } from './embeddings.ts'
import { readModelList } from './model-list.ts'
import { createPayments } from './payments.ts'
import { openPosts } from './posts.ts'
import { createSpeaker } from './speech.ts'

/** The real outside, as the settings want it. What comes from it is taken apart in `children`. */
export function createProviders(
  settings: Settings,
  children: Children,
  databaseUrl = settings.databaseUrl ?? '',
): Providers {
  const mailer = createMailer(settings)
  const { visionProvider: vision, maxDocumentPages: maxPages } = settings
  return {
    payments: createPayments(settings),
    chat: createChat(settings),
    speech: createSpeaker(settings),
    sendEmail: (message, signal) => mailer.send(message, signal),
    comms: createComms(settings, mailer),
    openPages: (load, mediaType, signal) =>
      openDocument(children, load, mediaType, { vision, maxPages, signal }),
    drawPage: (bytes, mediaType, page, signal) =>
      drawPage(children, bytes, mediaType, page, { maxPages, signal }),
    readPosts: (name, format, bytes, signal) => openPosts(children, { name, format, bytes }, { signal }),
    analyze: (bytes, file, signal) => analyzeFile(children, bytes, file, signal),
    embed: createEmbedder(settings),
    retrieval: createRetrieval({
      url: databaseUrl,
      applicationName: `${settings.projectName}-task-search`,
      validateRows: settings.checked,
      pooled: settings.databasePooled,
    }),
    readModelList,
  }
}
