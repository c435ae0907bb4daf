import { deleteDueAccount } from './accounts/delete.ts'
import { sendDeletionMail } from './accounts/deletion-mail.ts'
import { sendEmailChangeMail } from './accounts/email-change.ts'
import { exportAccount } from './accounts/export.ts'
import { sendInviteMail } from './accounts/invite.ts'
import { sendNoticeMail } from './accounts/notice.ts'
import { sendPasswordResetMail } from './accounts/password-reset.ts'
import { purgeAccounts } from './accounts/purge.ts'
import { sendVerification } from './accounts/verification.ts'
import { answerMessage } from './ai/chat.ts'
import { scoreSentiment } from './ai/sentiment.ts'
import { importPosts } from './blog/import.ts'
import { retagPosts } from './blog/retag.ts'
import { placeCall } from './comms/call.ts'
import { addDomain, checkDomain, listDomains } from './comms/domains.ts'
import { sendEmail } from './comms/email.ts'
import { settleSends } from './comms/settle.ts'
import { sendSms } from './comms/sms.ts'
import { bulkDocuments } from './documents/bulk.ts'
import { collectGarbage } from './documents/collect.ts'
import { renderPage } from './documents/draw.ts'
import { extractDocument } from './documents/extract.ts'
import { syncCatalog } from './llm/sync.ts'
import { loadTestTasks } from './load-test/index.ts'
import { cancelSubscription } from './payments/cancel.ts'
import { listPrices } from './payments/catalog.ts'
import { openCheckout } from './payments/checkout.ts'
import { applyEvent } from './payments/event.ts'
import { lookUpObject } from './payments/look-up.ts'
import { reconcilePayments } from './payments/reconcile.ts'
import { refundPayment } from './payments/refund.ts'
import { embedLocally, embedRemotely } from './rag/embed.ts'
import { indexDocuments } from './rag/index-documents.ts'
import { indexFiles } from './rag/index-files.ts'
import { purgeCollections } from './rag/purge.ts'
import { refreshDocuments } from './rag/refresh-documents.ts'
import { bulkJobs } from './system/bulk.ts'
import { measureTables } from './system/measure.ts'
import { noop } from './system/noop.ts'
import { pruneExpired } from './system/prune.ts'
import { enforceRetention } from './system/retention.ts'
import type { AnyTask, TaskFinder } from './task.ts'
import { synthesizePreview } from './voice/preview.ts'
import { transcribe } from './voice/transcribe.ts'
import { deliver } from './webhooks/deliver.ts'
import { mailDisabledEndpoint } from './webhooks/disabled-endpoint.ts'

/** All tasks, one per line. */
export const tasks: readonly AnyTask[] = [
  addDomain,
  applyEvent,
  bulkDocuments,
  bulkJobs,
  placeCall,
  cancelSubscription,
  listPrices,
  answerMessage,
  checkDomain,
  openCheckout,
  collectGarbage,
  deleteDueAccount,
  sendDeletionMail,
  sendNoticeMail,
  deliver,
  renderPage,
  sendEmail,
  sendEmailChangeMail,
  embedLocally,
  embedRemotely,
  exportAccount,
  extractDocument,
  pruneExpired,
  importPosts,
  indexDocuments,
  indexFiles,
  sendInviteMail,
  listDomains,
  ...loadTestTasks,
  lookUpObject,
  measureTables,
  noop,
  sendPasswordResetMail,
  synthesizePreview,
  purgeCollections,
  purgeAccounts,
  reconcilePayments,
  refreshDocuments,
  refundPayment,
  retagPosts,
  enforceRetention,
  scoreSentiment,
  settleSends,
  sendSms,
  mailDisabledEndpoint,
  syncCatalog,
  transcribe,
  sendVerification,
] as unknown as readonly AnyTask[]

/** Creates a function that finds tasks by name. */
export function createTaskFinder(candidates: readonly AnyTask[]): TaskFinder {
  const byName = new Map(candidates.map((task) => [task.name, task]))
  return (name) => {
    const task = byName.get(name)
    if (task === undefined) throw new Error(`Unknown task: ${name}`)
    return task as never
  }
}

/** Returns the built-in tasks, plus the `tasks` that the given modules export. Tests add tasks this way. */
export async function loadTasks(modules: readonly string[] = []): Promise<readonly AnyTask[]> {
  const extraModules = await Promise.all(
    modules.map((url) => import(url) as Promise<{ tasks: readonly AnyTask[] }>),
  )
  return [...tasks, ...extraModules.flatMap((module) => module.tasks)]
}

/** Returns the queues of tasks, sorted by name. */
export const queuesOf = (candidates: readonly AnyTask[]): readonly string[] =>
  [...new Set(candidates.map((task) => task.queue))].sort()
