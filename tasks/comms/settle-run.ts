import { type Channel, closeOrphans, type Send, sendById, unknownSends } from '../../sql/comms.ts'
import { inBatches } from '../batches.ts'
import type { TaskContext } from '../context.ts'
import { callMedium } from './call-run.ts'
import { look, type Medium, store } from './send.ts'
import { smsMedium } from './sms-run.ts'

const BATCH = 1000
// Each is a request to the provider, which counts them.
const LOOKED_UP = 50

/** The work of `comms.settle`. */
export async function run(ctx: TaskContext): Promise<{ closed: number; found: number }> {
  const closed = await inBatches(ctx.signal, BATCH, () => ctx.db.one(closeOrphans(BATCH)))
  let found = 0
  for (const { id, channel } of await ctx.db.any(unknownSends(LOOKED_UP))) {
    ctx.signal.throwIfAborted()
    if (await lookUpOnce(ctx, id, channel)) found++
  }
  return { closed, found }
}

/** Looks one send up at the provider; true when it is there. A failed look-up is repeated by the next run. */
async function lookUpOnce(ctx: TaskContext, id: string, channel: Channel): Promise<boolean> {
  const send = await ctx.db.maybeOne(sendById(id))
  if (send === null || send.status !== 'unknown' || channel === 'email') return false
  try {
    const found = await look(ctx, send, mediumOf(ctx, channel, send))
    if (found === null) return false
    return (await store(ctx, send, { kind: 'taken', detail: null, ...found })) !== null
  } catch (error) {
    ctx.log.warn({ sendId: id, error: String(error) }, 'The provider could not be asked')
    return false
  }
}

function mediumOf(ctx: TaskContext, channel: 'sms' | 'call', send: Send): Medium {
  const { comms } = ctx.providers
  return channel === 'sms' ? smsMedium(comms)(send) : callMedium(comms)(send)
}
