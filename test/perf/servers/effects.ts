import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { noRows, sql } from '../../../sql/db.ts'
import { type AnyTask, defineTask } from '../../../tasks/task.ts'

/** A task with an effect of which every one counts: it writes a line into a ledger, as a careful task does. */
const effect = defineTask({
  name: 'effects.write',
  queue: 'effects',
  pool: 'io',
  payload: z.strictObject({ before_ms: z.int(), after_ms: z.int() }),
  result: z.strictObject({ written: z.boolean() }),
  run: async (ctx, { before_ms, after_ms }) => {
    // Five workers killed in a row under a job that never got anywhere make it a suspect: this one gets somewhere.
    ctx.progress('writing', 0, 1)
    await delay(before_ms, undefined, { signal: ctx.signal })
    // Behind the fence an attempt is the only one: what an earlier one has done stands there, or was never done.
    const written = await ctx.fenced(async (tx) => {
      const done = await tx.any(sql.type(z.unknown())`select from effect where job_id = ${ctx.job.id}::uuid`)
      if (done.length > 0) return false
      await tx.run(
        sql.type(
          noRows,
        )`insert into effect (job_id, attempt) values (${ctx.job.id}::uuid, ${ctx.job.attempt})`,
      )
      return true
    })
    await delay(after_ms, undefined, { signal: ctx.signal })
    return { written }
  },
})

export const tasks: readonly AnyTask[] = [effect as unknown as AnyTask]
export { effect }
