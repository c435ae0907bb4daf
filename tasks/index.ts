import { deleteDueAccount } from './accounts/delete.task.ts'
import { sendDeletionMail } from './accounts/deletion-mail.task.ts'
import { sendEmailChangeMail } from './accounts/email-change.task.ts'
import { exportAccount } from './accounts/export.task.ts'
import { sendForcedDeletionMail } from './accounts/forced-deletion-mail.task.ts'
import { sendInviteMail } from './accounts/invite.task.ts'
import { sendMagicLink } from './accounts/magic-link.task.ts'
import { sendNoticeMail } from './accounts/notice.task.ts'
import { beginOidc } from './accounts/oidc-begin.task.ts'
import { exchangeOidc } from './accounts/oidc-exchange.task.ts'
import { sendPasswordResetMail } from './accounts/password-reset.task.ts'
import { purgeAccounts } from './accounts/purge.task.ts'
import { sendVerification } from './accounts/verification.task.ts'
import { answerMessage } from './ai/chat.task.ts'
import { completeMessages } from './ai/completion.task.ts'
import { scoreSentiment } from './ai/sentiment.task.ts'
import { announceScheduled } from './blog/announce.task.ts'
import { importPosts } from './blog/import.task.ts'
import { retagPosts } from './blog/retag.task.ts'
import { placeCall } from './comms/call.task.ts'
import { addDomain, checkDomain, listDomains } from './comms/domains.task.ts'
import { sendEmail } from './comms/email.task.ts'
import { settleSends } from './comms/settle.task.ts'
import { sendSms } from './comms/sms.task.ts'
import { bulkDocuments } from './documents/bulk.task.ts'
import { collectGarbage } from './documents/collect.task.ts'
import { renderPage } from './documents/draw.task.ts'
import { extractDocument } from './documents/extract.task.ts'
import { syncCatalog } from './llm/sync.task.ts'
import { loadTestTasks } from './load-test/index.ts'
import { updateAddress } from './payments/address.task.ts'
import { cancelSubscription } from './payments/cancel.task.ts'
import { listPrices } from './payments/catalog.task.ts'
import { openCheckout } from './payments/checkout.task.ts'
import { applyEvent } from './payments/event.task.ts'
import { forgetCustomer } from './payments/forget.task.ts'
import { lookUpObject } from './payments/look-up.task.ts'
import { changePlan } from './payments/plan.task.ts'
import { openPortal } from './payments/portal.task.ts'
import { reconcilePayments } from './payments/reconcile.task.ts'
import { refundPayment } from './payments/refund.task.ts'
import { resumeSubscription } from './payments/resume.task.ts'
import { embedLocally, embedRemotely } from './rag/embed.task.ts'
import { indexDocuments } from './rag/index-documents.task.ts'
import { indexFiles } from './rag/index-files.task.ts'
import { purgeCollections } from './rag/purge.task.ts'
import { refreshDocuments } from './rag/refresh-documents.task.ts'
import { runSchedule } from './schedules/run.task.ts'
import { endBatch } from './system/batch.task.ts'
import { bulkJobs } from './system/bulk.task.ts'
import { measureTables } from './system/measure.task.ts'
import { noop } from './system/noop.task.ts'
import { pruneExpired } from './system/prune.task.ts'
import { resealTexts } from './system/reseal.task.ts'
import { enforceRetention } from './system/retention.task.ts'
import type { AnyTask, TaskFinder } from './task.ts'
import { synthesizePreview } from './voice/preview.task.ts'
import { synthesizeSpeech } from './voice/speech.task.ts'
import { transcribe } from './voice/transcribe.task.ts'
import { deliver } from './webhooks/deliver.task.ts'
import { mailDisabledEndpoint } from './webhooks/disabled-endpoint.task.ts'
import { cancelStranded } from './worker-queues/cancel-stranded.task.ts'
import { isWorkerJob } from './worker-queues/names.ts'
import { push } from './worker-queues/push.task.ts'

/** All tasks, one per line. */
export const tasks: readonly AnyTask[] = [
  addDomain,
  announceScheduled,
  applyEvent,
  bulkDocuments,
  bulkJobs,
  placeCall,
  cancelStranded,
  cancelSubscription,
  listPrices,
  answerMessage,
  checkDomain,
  completeMessages,
  openCheckout,
  openPortal,
  updateAddress,
  forgetCustomer,
  changePlan,
  resumeSubscription,
  collectGarbage,
  deleteDueAccount,
  sendDeletionMail,
  sendForcedDeletionMail,
  sendNoticeMail,
  deliver,
  endBatch,
  renderPage,
  sendEmail,
  sendEmailChangeMail,
  embedLocally,
  embedRemotely,
  exportAccount,
  extractDocument,
  pruneExpired,
  push,
  importPosts,
  indexDocuments,
  indexFiles,
  sendInviteMail,
  listDomains,
  ...loadTestTasks,
  lookUpObject,
  measureTables,
  noop,
  sendMagicLink,
  beginOidc,
  exchangeOidc,
  sendPasswordResetMail,
  synthesizePreview,
  synthesizeSpeech,
  purgeCollections,
  purgeAccounts,
  reconcilePayments,
  refreshDocuments,
  refundPayment,
  retagPosts,
  enforceRetention,
  resealTexts,
  runSchedule,
  scoreSentiment,
  settleSends,
  sendSms,
  mailDisabledEndpoint,
  syncCatalog,
  transcribe,
  sendVerification,
] as unknown as readonly AnyTask[]

/** Creates a function that finds tasks by name. Our workers send the jobs of worker queues to their endpoints. */
export function createTaskFinder(candidates: readonly AnyTask[]): TaskFinder {
  const byName = new Map(candidates.map((task) => [task.name, task]))
  return (name) => {
    const task = byName.get(isWorkerJob(name) ? push.name : name)
    if (task === undefined) throw new Error(`Unknown task: ${name}`)
    return task as never
  }
}

/** Finds a built-in task. */
export const findTask = createTaskFinder(tasks)

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
