import {
  type Channel,
  closeOrphanedSends,
  findSendById,
  findUnknownSends,
  type Send,
} from '../../sql/comms/sends.ts'
import type { TaskContext } from '../context.ts'
import { runInBatches } from '../system/batches.ts'
import { createCallAdapter } from './call.work.ts'
import { type ChannelAdapter, findAccepted, recordAccepted } from './send.ts'
import { createSmsAdapter } from './sms.work.ts'

const BATCH_SIZE = 1000
// Each lookup is a request to the provider, which has a rate limit.
const MAX_LOOKUPS = 50

/** Runs `comms.settle`. */
export async function run(ctx: TaskContext): Promise<{ closed: number; found: number }> {
  const closed = await runInBatches(ctx.signal, BATCH_SIZE, () => ctx.db.one(closeOrphanedSends(BATCH_SIZE)))
  let found = 0
  for (const { id, channel } of await ctx.db.any(findUnknownSends(MAX_LOOKUPS))) {
    ctx.signal.throwIfAborted()
    if (await lookUpOnce(ctx, id, channel)) found++
  }
  return { closed, found }
}

/** Looks up a send at the provider; true if it was found and recorded. If the lookup fails, the next run repeats it. */
async function lookUpOnce(ctx: TaskContext, id: string, channel: Channel): Promise<boolean> {
  const send = await ctx.db.maybeOne(findSendById(id))
  if (send === null || send.status !== 'unknown' || channel === 'email') return false
  try {
    const found = await findAccepted(ctx, send, createAdapter(ctx, channel, send))
    if (found === null) return false
    return (await recordAccepted(ctx, send, { kind: 'taken', detail: null, ...found })) !== null
  } catch (error) {
    ctx.log.warn({ sendId: id, error: String(error) }, 'Provider lookup failed')
    return false
  }
}

function createAdapter(ctx: TaskContext, channel: 'sms' | 'call', send: Send): ChannelAdapter {
  const create = channel === 'sms' ? createSmsAdapter : createCallAdapter
  return create(ctx.providers.comms, ctx.settings.telephony)(send)
}
