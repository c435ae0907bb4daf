import { Failure } from '../../sql/errors.ts'
import {
  type AppliedList,
  applyList,
  findLastListAttempt,
  listKnownModels,
  type SkippedEntry,
  storeListRefusal,
} from '../../sql/llm/models.ts'
import { AI_PROVIDERS } from '../ai/providers.ts'
import type { TaskContext } from '../context.ts'
import { parseModelsDev } from './models-dev.ts'
import { checkPlausibility } from './plausible.ts'

interface SyncPayload {
  readonly asked?: boolean | undefined
  readonly force?: boolean | undefined
}

interface SyncResult {
  readonly status: 'applied' | 'fresh' | 'off'
  readonly changes: AppliedList | null
  readonly skipped?: SkippedEntry[]
}

// Maximum age of a list, because prices change daily. After a failed download, the next hourly run retries.
const MAX_AGE_HOURS = 20
// Number of skipped entries in the result of the job.
const MAX_NAMED = 100

/** Runs `llm.sync`. */
export async function run(
  ctx: TaskContext,
  { asked = false, force = false }: SyncPayload,
): Promise<SyncResult> {
  const url = ctx.settings.llmCatalogUrl
  if (url === null) return { status: 'off' as const, changes: null }
  if (!asked && (await isFresh(ctx, url))) return { status: 'fresh' as const, changes: null }
  ctx.reportProgress('Downloading the model list')
  const { changes, skipped } = await downloadAndApply(ctx, url, force).catch(async (error) => {
    if (error instanceof Failure && error.code === 'llm.list_refused')
      await recordRefusal(ctx, url, error.detail)
    throw error
  })
  return {
    status: 'applied' as const,
    changes,
    ...(skipped.length === 0 ? {} : { skipped: skipped.slice(0, MAX_NAMED) }),
  }
}

async function isFresh({ db }: TaskContext, url: string): Promise<boolean> {
  const last = await db.maybeOne(findLastListAttempt())
  return last !== null && last.url === url && last.hours < MAX_AGE_HOURS
}

async function downloadAndApply(
  { providers, signal, runFenced }: TaskContext,
  url: string,
  force: boolean,
): Promise<{ readonly changes: AppliedList; readonly skipped: readonly SkippedEntry[] }> {
  const list = parseModelsDev(await providers.readModelList(url, signal))
  return runFenced(async (tx) => {
    checkPlausibility(list, force ? [] : await tx.any(listKnownModels(AI_PROVIDERS)))
    return { changes: (await tx.one(applyList(list, url))).applied, skipped: list.skipped ?? [] }
  })
}

async function recordRefusal({ runFenced, log }: TaskContext, url: string, detail: string): Promise<void> {
  await runFenced((tx) => tx.run(storeListRefusal(url, detail)))
  log.warn({ detail }, 'Model list rejected')
}
