import { z } from 'zod'
import { type Queries, readWithin } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { chooseModel, findChosenModel, lockModelsById, resetModel } from '../../../sql/llm/models.ts'
import {
  MODEL_ORDER,
  readCatalogStatus,
  readCurrent,
  readModalities,
  readModels,
  readPrices,
  readVendors,
} from '../../../sql/llm/reads.ts'
import type { Reader } from '../../../sql/reads/reader.ts'
import { AI_PROVIDERS } from '../../../tasks/ai/providers.ts'
import { MODALITIES } from '../../../tasks/llm/modalities.ts'
import { syncCatalog } from '../../../tasks/llm/sync.task.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { createJob } from '../../../tasks/task.ts'
import { answerArray, buildCursorSchema } from '../../pipeline/request/lists.ts'
import { count, option } from '../../pipeline/request/schemas.ts'
import { answerJson, area, route } from '../../pipeline/route.ts'
import {
  CatalogStatus,
  CurrentModel,
  CurrentModelRequest,
  ModalityCount,
  Model,
  Prices,
  SyncResult,
  VendorCount,
} from './shapes.ts'

// SPEC defines this list without pages, so its length is limited.
const MAX_VENDORS = 1000

/** Routes for the model catalog and the current model. */
export const llm = area('llm', '/llm', { auth: 'open' }, [
  route({
    method: 'get',
    path: '/status',
    summary: 'Get the status of the model catalog',
    description: `Has statistics, without disabled models, and the source of the catalog. Deployments are the models of \
providers that this service can call. \`refusal\` is the reason why the latest model list was refused; it is cleared when \
a list is accepted. \`skipped\` names the entries of the list that are invalid.`,
    response: CatalogStatus,
    reads: 'statistics',
    mayLag: true,
    handle: async ({ reader }) => answerJson((await reader.text(readCatalogStatus, [AI_PROVIDERS]))!),
  }),

  route({
    method: 'get',
    path: '/vendors',
    summary: 'List vendors with their model counts',
    description: 'Ordered by name; at most 1000.',
    response: z.array(VendorCount),
    reads: 'list',
    handle: async ({ reader }) => answerJson((await reader.text(readVendors, [MAX_VENDORS]))!),
  }),

  route({
    method: 'get',
    path: '/modalities',
    summary: 'List modalities with their model counts',
    response: z.array(ModalityCount),
    reads: 'list',
    handle: async ({ reader }) => answerJson((await reader.text(readModalities, [MODALITIES]))!),
  }),

  route({
    method: 'get',
    path: '/models',
    summary: 'List models, latest first',
    description: `\`pattern\` matches any part of the id or title, ignoring case; it has no wildcards. Prices are those \
of today, in US dollars per million tokens; null if unknown.`,
    query: z.object({
      pattern: z.string().max(300).optional(),
      vendor: z.string().trim().toLowerCase().max(100).optional(),
      modality: z.enum(MODALITIES).optional(),
      limit: count({ min: 1, max: 200, fallback: 50 }),
      cursor: buildCursorSchema(MODEL_ORDER),
      include_disabled: option(),
    }),
    response: z.array(Model),
    reads: 'list',
    handle: async ({ query, reader, request }) => {
      const { pattern = null, vendor, modality = null, limit, cursor = null, include_disabled } = query
      const values = [pattern, vendor || null, modality, include_disabled, cursor, 0, limit] as const
      return answerArray((await reader.text(readModels, values))!, request)
    },
  }),

  route({
    method: 'get',
    path: '/prices',
    summary: 'List the price history of a model',
    description:
      'Latest first, at most 1000. A price applies from its day, in UTC, until the day of the next price.',
    query: z.object({ vendor: z.string().trim().toLowerCase().max(100), model_id: z.string().max(200) }),
    response: Prices,
    errors: ['llm.model_missing'],
    reads: 'list',
    handle: async ({ query, reader }) => {
      const text = await reader.text(readPrices, [query.vendor, query.model_id, 1000])
      if (text === null) throw fail('llm.model_missing')
      return answerJson(text)
    },
  }),

  route({
    method: 'get',
    path: '/current',
    summary: 'Get the model that answers chats',
    description:
      'Has its data from the catalog; unknown fields are null. `chosen` is true if an admin chose the model, false if the settings name it.',
    response: CurrentModel,
    handle: async ({ edge }) => answerJson(await readCurrentModel(edge.settings, edge.reader.text)),
  }),

  route({
    method: 'post',
    path: '/current',
    summary: 'Choose the model that answers chats',
    description: `\`provider\` defaults to the only provider of the model or, among several, to the current one. \
\`temperature\` and \`max_tokens\` default to the settings.`,
    auth: 'admin',
    body: CurrentModelRequest,
    response: CurrentModel,
    errors: ['llm.model_missing', 'llm.model_disabled', 'llm.model_no_chat', 'llm.provider_needed'],
    whyRepeatable: 'a repeat chooses the same model',
    handle: ({ body, caller, edge: { settings }, transaction }) =>
      transaction(async (tx) => {
        const vendor = await pickProvider(tx, settings, body)
        const { model, temperature = null, max_tokens = null } = body
        await tx.run(
          chooseModel({ vendor, model_id: model, temperature, max_tokens, chosenBy: caller.ownerId }),
        )
        return answerJson(
          await readCurrentModel(settings, (statement, values) => readWithin(tx, statement, values)),
        )
      }),
  }),

  route({
    method: 'delete',
    path: '/current',
    summary: 'Restore the chat model of the settings',
    auth: 'admin',
    response: CurrentModel,
    handle: async ({ edge }) => {
      await edge.db.run(resetModel())
      return answerJson(await readCurrentModel(edge.settings, edge.reader.text))
    },
  }),

  route({
    method: 'post',
    path: '/sync',
    summary: 'Update the model catalog now',
    description: `The catalog is also updated automatically once a day. Invalid entries are skipped and named; the \
catalog keeps what it knows about them. A list that is broken or implausible is refused as a whole; \`force\` accepts a list that differs from the previous one by more than the limit.`,
    auth: 'admin',
    query: z.object({ force: option() }),
    response: SyncResult,
    errors: ['llm.list_failed', 'llm.list_refused'],
    sideEffect: true,
    task: ({ query }) => createJob(syncCatalog, { asked: true, force: query.force }),
  }),
])

async function readCurrentModel({ ai }: Settings, read: Reader['text']): Promise<string> {
  return (await read(readCurrent, [ai.provider, ai.model, ai.temperature, ai.maxTokens]))!
}

/**
 * Picks the provider for a model that an admin has chosen.
 * @throws llm.model_missing, llm.model_disabled, llm.model_no_chat, llm.provider_needed
 */
async function pickProvider(
  tx: Queries,
  { ai }: Settings,
  { provider, model }: z.output<typeof CurrentModelRequest>,
): Promise<string> {
  const found = await tx.any(lockModelsById(model, provider === undefined ? AI_PROVIDERS : [provider]))
  if (found.length === 0) throw fail('llm.model_missing')
  const enabled = found.filter(({ disabled }) => !disabled)
  if (enabled.length === 0) throw fail('llm.model_disabled')
  const chatModels = enabled.filter(({ chats }) => chats)
  if (chatModels.length === 0) throw fail('llm.model_no_chat')
  if (chatModels.length === 1) return chatModels[0]!.vendor
  const currentVendor = (await tx.maybeOne(findChosenModel()))?.vendor ?? ai.provider
  if (chatModels.some(({ vendor }) => vendor === currentVendor)) return currentVendor
  throw fail('llm.provider_needed', { providers: chatModels.map(({ vendor }) => vendor).join(', ') })
}
