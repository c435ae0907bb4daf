import type { Transaction } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { type LockedQueue, lockWorkerQueue, type QueueViewer } from '../../../sql/worker-queues/queues.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import type { Answer, Input, Writes } from '../../pipeline/route.ts'
import { isAdmin } from '../jobs/shapes.ts'

/** Access of callers to worker queues. */

/** Returns the caller as the statements of worker queues know it. */
export const viewerOf = (caller: Caller): QueueViewer => [
  caller.ownerId,
  isAdmin(caller),
  caller.key?.organizationId ?? null,
]

/** Input of a route on one queue. */
export type QueueInput<R, B = undefined> = Input<{ readonly name: string }, unknown, B, Caller> & Writes<R>

/** Changes a queue in the transaction of the request, which locks it. @throws as {@link lockQueue} does. */
export function changeQueue<R>(
  { params, caller, transaction }: QueueInput<R, unknown>,
  work: (tx: Transaction, queue: LockedQueue) => Promise<R | Answer<R>>,
): Promise<Answer<R>> {
  return transaction(async (tx) => work(tx, await lockQueue(tx, params.name, caller)))
}

/** Locks a queue for a change. @throws as {@link requireManager} does. */
async function lockQueue(tx: Transaction, name: string, caller: Caller): Promise<LockedQueue> {
  const queue = await tx.maybeOne(lockWorkerQueue(name, viewerOf(caller)))
  requireManager(queue?.access ?? null)
  return queue!
}

/** @throws fail('worker_queue.missing'), or fail('org.forbidden') for a member of its organization. */
export function requireManager(access: string | null): void {
  if (access === null) throw fail('worker_queue.missing')
  if (access !== 'manage') throw fail('org.forbidden', { roles: 'admin or owner' })
}
