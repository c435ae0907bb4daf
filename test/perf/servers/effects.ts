import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { noRows, sql } from '../../../sql/db.ts'
import { type AnyTask, defineTask } from '../../../tasks/task.ts'

/** A task that writes exactly one row per job into a table of effects. */
const effect = defineTask({
  name: 'effects.write',
  queue: 'effects',
  pool: 'io',
  payload: z.strictObject({ before_ms: z.int(), after_ms: z.int() }),
  result: z.strictObject({ written: z.boolean() }),
  run: async (ctx, { before_ms, after_ms }) => {
    ctx.reportProgress('writing', 0, 1)
    await delay(before_ms, undefined, { signal: ctx.signal })
    // Only one attempt can write behind the fence, so a missing row proves that no earlier attempt wrote it.
    const written = await ctx.runFenced(async (tx) => {
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
