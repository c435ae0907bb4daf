import { Failure } from '../../sql/errors.ts'
import { type Applied, applyList, knownModels, lastAttempt, noteRefusal } from '../../sql/llm.ts'
import { AI_PROVIDERS } from '../ai/providers.ts'
import type { TaskContext } from '../context.ts'
import { readModelsDev } from './models-dev.ts'
import { checkPlausible } from './plausible.ts'
import type { SyncPayload, SyncResult } from './sync.ts'

// Prices change from day to day. A list that could not be reached is tried again an hour later.
const FRESH_HOURS = 20

/** The work of `llm.sync`. */
export async function run(
  ctx: TaskContext,
  { asked = false, force = false }: SyncPayload,
): Promise<SyncResult> {
  const url = ctx.settings.llmCatalogUrl
  if (url === null) return { status: 'off' as const, changes: null }
  if (!asked && (await isFresh(ctx, url))) return { status: 'fresh' as const, changes: null }
  ctx.progress('Reading the list')
  const changes = await read(ctx, url, force).catch(async (error) => {
    if (error instanceof Failure && error.code === 'llm.list_refused') await note(ctx, url, error.detail)
    throw error
  })
  return { status: 'applied' as const, changes }
}

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
