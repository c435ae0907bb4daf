import { deleteDue } from './accounts/delete.ts'
import { deletionMail } from './accounts/deletion-mail.ts'
import { emailChange } from './accounts/email-change.ts'
import { exportAccount } from './accounts/export.ts'
import { invite } from './accounts/invite.ts'
import { notice } from './accounts/notice.ts'
import { passwordReset } from './accounts/password-reset.ts'
import { purgeAccounts } from './accounts/purge.ts'
import { verification } from './accounts/verification.ts'
import { chat } from './ai/chat.ts'
import { sentiment } from './ai/sentiment.ts'
import { importPosts } from './blog/import.ts'
import { retag } from './blog/retag.ts'
import { call } from './comms/call.ts'
import { addDomain, checkDomain, listDomains } from './comms/domains.ts'
import { email } from './comms/email.ts'
import { settle } from './comms/settle.ts'
import { sms } from './comms/sms.ts'
import { bulk } from './documents/bulk.ts'
import { collect } from './documents/collect.ts'
import { draw } from './documents/draw.ts'
import { extract } from './documents/extract.ts'
import { sync } from './llm/sync.ts'
import { loadTestTasks } from './load-test/index.ts'
import { cancel } from './payments/cancel.ts'
import { catalog } from './payments/catalog.ts'
import { checkout } from './payments/checkout.ts'
import { applyEvent } from './payments/event.ts'
import { lookUp } from './payments/look-up.ts'
import { reconcile } from './payments/reconcile.ts'
import { refund } from './payments/refund.ts'
import { embedLocally, embedRemotely } from './rag/embed.ts'
import { indexDocuments } from './rag/index-documents.ts'
import { indexFiles } from './rag/index-files.ts'
import { purge } from './rag/purge.ts'
import { refreshDocuments } from './rag/refresh-documents.ts'
import { bulkJobs } from './system/bulk.ts'
import { measure } from './system/measure.ts'
import { noop } from './system/noop.ts'
import { prune } from './system/prune.ts'
import { retention } from './system/retention.ts'
import type { AnyTask, TaskFinder } from './task.ts'
import { preview } from './voice/preview.ts'
import { transcribe } from './voice/transcribe.ts'
import { deliver } from './webhooks/deliver.ts'
import { disabledEndpointMail } from './webhooks/disabled-endpoint.ts'

/** All tasks, one per line. */
export const tasks: readonly AnyTask[] = [
  addDomain,
  applyEvent,
  bulk,
  bulkJobs,
  call,
  cancel,
  catalog,
  chat,
  checkDomain,
  checkout,
  collect,
  deleteDue,
  deletionMail,
  notice,
  deliver,
  draw,
  email,
  emailChange,
  embedLocally,
  embedRemotely,
  exportAccount,
  extract,
  prune,
  importPosts,
  indexDocuments,
  indexFiles,
  invite,
  listDomains,
  ...loadTestTasks,
  lookUp,
  measure,
  noop,
  passwordReset,
  preview,
  purge,
  purgeAccounts,
  reconcile,
  refreshDocuments,
  refund,
  retag,
  retention,
  sentiment,
  settle,
  sms,
  disabledEndpointMail,
  sync,
  transcribe,
  verification,
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

/** Returns all tasks, plus the `tasks` that these modules export. Tests add their own. */
export async function loadTasks(modules: readonly string[] = []): Promise<readonly AnyTask[]> {
  const extraModules = await Promise.all(
    modules.map((url) => import(url) as Promise<{ tasks: readonly AnyTask[] }>),
  )
  return [...tasks, ...extraModules.flatMap((module) => module.tasks)]
}

/** Returns the queues of tasks, sorted by name. */
export const queuesOf = (candidates: readonly AnyTask[]): readonly string[] =>
  [...new Set(candidates.map((task) => task.queue))].sort()
