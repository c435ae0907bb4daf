import { z } from 'zod'
import {
  type Channel,
  closeOrphans,
  deleteOldSends,
  type Send,
  sendById,
  unknownSends,
} from '../../sql/comms.ts'
import type { TaskContext } from '../context.ts'
import { defineTask } from '../task.ts'
import { callMedium } from './call.ts'
import { look, type Medium, store } from './send.ts'
import { smsMedium } from './sms.ts'

const BATCH = 1000
// Each is a question to the provider, which counts them.
const LOOKED_UP = 50
// The ledger is a record for people; whoever needs it longer copies it.
const KEEP_DAYS = 90

/**
 * Keeps the ledger of sends true: sends whose job is over without them are closed, the provider is asked again about
 * those that are unknown, and old ones go.
 */
export const settle = defineTask({
  name: 'comms.settle',
  queue: 'comms',
  pool: 'io',
  actor: () => 'comms-settle',
  whenBusy: 'join',
  timeoutSeconds: 600,
  payload: z.strictObject({}),
  result: z.strictObject({ closed: z.int(), found: z.int(), deleted: z.int() }),
  run: async (ctx) => {
    const { count: closed } = await ctx.db.one(closeOrphans(BATCH))
    let found = 0
    for (const { id, channel } of await ctx.db.any(unknownSends(LOOKED_UP))) {
      ctx.signal.throwIfAborted()
      if (await lookUpOnce(ctx, id, channel)) found++
    }
    const { count: deleted } = await ctx.db.one(deleteOldSends(KEEP_DAYS, BATCH))
    return { closed, found, deleted }
  },
})

/** Asks the provider about one send; true when it has it. What can't be asked now is asked the next time. */
export async function lookUpOnce(ctx: TaskContext, id: string, channel: Channel): Promise<boolean> {
  const send = await ctx.db.maybeOne(sendById(id))
  if (send === null || send.status !== 'unknown' || channel === 'email') return false
  try {
    const found = await look(ctx, send, mediumOf(ctx, channel, send))
    if (found === null) return false
    return (await store(ctx, send, { kind: 'taken', detail: null, ...found })).status === 'sent'
  } catch (error) {
    ctx.log.warn({ sendId: id, error: String(error) }, 'The provider could not be asked')
    return false
  }
}

function mediumOf(ctx: TaskContext, channel: 'sms' | 'call', send: Send): Medium {
  const { comms } = ctx.providers
  return channel === 'sms' ? smsMedium(comms)(send) : callMedium(comms)(send)
}
