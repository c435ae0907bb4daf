import { z } from 'zod'
import { Failure } from '../../sql/errors.ts'
import { Applied, applyList, knownModels, lastAttempt, noteRefusal } from '../../sql/llm.ts'
import { AI_PROVIDERS } from '../ai/providers.ts'
import type { TaskContext } from '../context.ts'
import { defineTask } from '../task.ts'
import { readModelsDev } from './models-dev.ts'
import { checkPlausible } from './plausible.ts'

// Prices change by the day. What could not be reached is tried again an hour later.
const FRESH_HOURS = 20

/**
 * Makes the catalog say what the list at `LLM_CATALOG_URL` says, all at once or not at all. Run by the hour, it reads the
 * list once a day; `asked`: at once. `force` takes a list that differs more from the one before than it should.
 * Fails with `llm.list_failed` or `llm.list_refused`, which says why; the catalog stays what it was.
 */
export const sync = defineTask({
  name: 'llm.sync',
  queue: 'system',
  pool: 'io',
  actor: () => 'llm_sync',
  payload: z.strictObject({ asked: z.boolean().optional(), force: z.boolean().optional() }),
  result: z.strictObject({
    status: z.enum(['applied', 'fresh', 'off']),
    changes: Applied.nullable(),
  }),
  timeoutSeconds: 180,
  run: async (ctx, { asked = false, force = false }) => {
    const url = ctx.settings.llmCatalogUrl
    if (url === null) return { status: 'off' as const, changes: null }
    if (!asked && (await isFresh(ctx, url))) return { status: 'fresh' as const, changes: null }
    ctx.progress('Reading the list')
    const changes = await read(ctx, url, force).catch(async (error) => {
      if (error instanceof Failure && error.code === 'llm.list_refused') await note(ctx, url, error.detail)
      throw error
    })
    return { status: 'applied' as const, changes }
  },
})

async function isFresh({ db }: TaskContext, url: string): Promise<boolean> {
  const last = await db.maybeOne(lastAttempt())
  return last !== null && last.url === url && last.hours < FRESH_HOURS
}

async function read(
  { providers, signal, fenced }: TaskContext,
  url: string,
  force: boolean,
): Promise<Applied> {
  const list = readModelsDev(await providers.readModelList(url, signal))
  return fenced(async (tx) => {
    checkPlausible(list, force ? [] : await tx.any(knownModels(AI_PROVIDERS)))
    return (await tx.one(applyList(list, url))).applied
  })
}

async function note({ fenced, log }: TaskContext, url: string, detail: string): Promise<void> {
  await fenced((tx) => tx.run(noteRefusal(url, detail)))
  log.warn({ detail }, 'A list of models was refused')
}
