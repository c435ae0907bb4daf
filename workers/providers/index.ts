import type { Providers } from '../../tasks/context.ts'
import { createRetrieval } from '../../tasks/rag/retrieval.ts'
import type { Settings } from '../../tasks/settings.ts'
import { createChat } from './chat.ts'
import { createComms } from './comms.ts'
import { drawOnThread, openOnThreads } from './crew.ts'
import { createMailer } from './email.ts'
import { createEmbedder } from './embeddings.ts'
import { readModelList } from './model-list.ts'
import { createPayments } from './payments.ts'
import { createSpeaker } from './speech.ts'

/**
 * The real outside, as the settings want it; `share` tells how many threads a job of this pool may have at present, and
 * `alone` whether it is the only one.
 */
export function createProviders(
  settings: Settings,
  share: () => number = () => 1,
  alone: () => boolean = () => true,
  databaseUrl = settings.databaseUrl ?? '',
): Providers {
  const mailer = createMailer(settings)
  return {
    payments: createPayments(settings),
    chat: createChat(settings),
    speech: createSpeaker(settings),
    sendEmail: (message, signal) => mailer.send(message, signal),
    comms: createComms(settings, mailer),
    openPages: (bytes, mediaType, signal) =>
      openOnThreads(bytes, mediaType, { vision: settings.visionProvider, signal, share, alone }),
    drawPage: drawOnThread,
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
