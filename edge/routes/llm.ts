import { z } from 'zod'
import { type Queries, readWithin } from '../../sql/db.ts'
import { fail } from '../../sql/errors.ts'
import {
  MODEL_ORDER,
  readCatalogStatus,
  readCurrent,
  readModalities,
  readModels,
  readPrices,
  readVendors,
} from '../../sql/llm/reads.ts'
import { chooseModel, chosenModel, modelsNamed, unchooseModel } from '../../sql/llm.ts'
import type { Reader } from '../../sql/reader.ts'
import { AI_PROVIDERS } from '../../tasks/ai/providers.ts'
import { MODALITIES } from '../../tasks/llm/modalities.ts'
import { sync } from '../../tasks/llm/sync.ts'
import type { Settings } from '../../tasks/settings.ts'
import { newJob } from '../../tasks/task.ts'
import { array, cursor } from '../pipeline/lists.ts'
import { area, json, route } from '../pipeline/route.ts'
import { count, option } from '../pipeline/schemas.ts'
import {
  CatalogStatus,
  Current,
  CurrentRequest,
  ModalityCount,
  Model,
  Prices,
  SyncResult,
  VendorCount,
} from './llm/shapes.ts'

// Lists that SPEC returns without pages are capped.
const MAX_VENDORS = 1000

/** The model catalog, and the current model. */
export const llm = area(
  'llm',
  '/llm',
  { auth: 'open', about: 'Model vendors and models, with their prices.' },
  [
    route({
      method: 'get',
      path: '/status',
      summary: 'Get statistics and the source of the model catalog',
      description: `Disabled models are not counted. Deployments are the models of the providers that can be called from \
here. \`refusal\` is the reason why the last list of models was refused, until another one is accepted.`,
      response: CatalogStatus,
      reads: 'statistics',
      handle: async ({ reader }) => json((await reader.text(readCatalogStatus, [AI_PROVIDERS]))!),
    }),

    route({
      method: 'get',
      path: '/vendors',
      summary: 'List vendors with their number of models',
      description: 'Ordered by name; at most 1000.',
      response: z.array(VendorCount),
      reads: 'list',
      handle: async ({ reader }) => json((await reader.text(readVendors, [MAX_VENDORS]))!),
    }),

    route({
      method: 'get',
      path: '/modalities',
      summary: 'List modalities with their number of models',
      response: z.array(ModalityCount),
      reads: 'list',
      handle: async ({ reader }) => json((await reader.text(readModalities, [MODALITIES]))!),
    }),

    route({
      method: 'get',
      path: '/models',
      summary: 'List models, latest first',
      description: `\`pattern\` matches any part of the id or title, ignoring case, without wildcards. Prices are those \
of today, in US dollars per million tokens; null if unknown.`,
      query: z.object({
        pattern: z.string().max(300).optional(),
        vendor: z.string().trim().toLowerCase().max(100).optional(),
        modality: z.enum(MODALITIES).optional(),
        limit: count({ min: 1, max: 200, fallback: 50 }),
        cursor: cursor(MODEL_ORDER),
        include_disabled: option(),
      }),
      response: z.array(Model),
      reads: 'list',
      handle: async ({ query, reader, request }) => {
        const { pattern = null, vendor, modality = null, limit, cursor = null, include_disabled } = query
        const values = [pattern, vendor || null, modality, include_disabled, cursor, 0, limit] as const
        return array((await reader.text(readModels, values))!, request)
      },
    }),

    route({
      method: 'get',
      path: '/prices',
      summary: 'List the prices of a model over time, latest first',
      description:
        'A price applies from its day, in UTC, until the day of the next one. Returns at most 1000.',
      query: z.object({ vendor: z.string().trim().toLowerCase().max(100), model_id: z.string().max(200) }),
      response: Prices,
      errors: ['llm.model_missing'],
      reads: 'list',
      handle: async ({ query, reader }) => {
        const text = await reader.text(readPrices, [query.vendor, query.model_id, 1000])
        if (text === null) throw fail('llm.model_missing')
        return json(text)
      },
    }),

    route({
      method: 'get',
      path: '/current',
      summary: 'Get the model that answers chats, with its data from the catalog',
      description:
        'Fields that the catalog does not have are null. `chosen` says whether an admin chose it, not the settings.',
      response: Current,
      handle: async ({ edge }) => json(await current(edge.settings, edge.reader.text)),
    }),

    route({
      method: 'post',
      path: '/current',
      summary: 'Choose the model that answers chats from now on',
      description: `\`provider\` defaults to the one that has the model; if several have it, to the current one. \
\`temperature\` and \`max_tokens\` default to the settings.`,
      auth: 'admin',
      body: CurrentRequest,
      response: Current,
      errors: ['llm.model_missing', 'llm.model_disabled', 'llm.model_no_chat', 'llm.provider_needed'],
      repeatable: 'a repeat chooses the same model',
      handle: ({ body, caller, edge: { settings }, transaction }) =>
        transaction(async (tx) => {
          const vendor = await providerOf(tx, settings, body)
          const { model, temperature = null, max_tokens = null } = body
          await tx.run(
            chooseModel({ vendor, model_id: model, temperature, max_tokens, chosenBy: caller.ownerId }),
          )
          return json(await current(settings, (statement, values) => readWithin(tx, statement, values)))
        }),
    }),

    route({
      method: 'delete',
      path: '/current',
      summary: 'Go back to the model of the settings, and return it',
      auth: 'admin',
      response: Current,
      handle: async ({ edge }) => {
        await edge.db.run(unchooseModel())
        return json(await current(edge.settings, edge.reader.text))
      },
    }),

    route({
      method: 'post',
      path: '/sync',
      summary: 'Update the model catalog now',
      description: `The catalog is updated automatically once a day. A list that is broken or implausible is refused as \
a whole; \`force\` accepts one that differs more from the previous list than it should.`,
      auth: 'admin',
      query: z.object({ force: option() }),
      response: SyncResult,
      errors: ['llm.list_failed', 'llm.list_refused'],
      sideEffect: true,
      task: ({ query }) => newJob(sync, { asked: true, force: query.force }),
    }),
  ],
)

async function current({ ai }: Settings, read: Reader['text']): Promise<string> {
  return (await read(readCurrent, [ai.provider, ai.model, ai.temperature, ai.maxTokens]))!
}

/** The provider of a model to choose. @throws why it cannot be chosen. */
async function providerOf(
  tx: Queries,
  { ai }: Settings,
  { provider, model }: z.output<typeof CurrentRequest>,
): Promise<string> {
  const found = await tx.any(modelsNamed(model, provider === undefined ? AI_PROVIDERS : [provider]))
  if (found.length === 0) throw fail('llm.model_missing')
  const enabled = found.filter(({ disabled }) => !disabled)
  if (enabled.length === 0) throw fail('llm.model_disabled')
  const able = enabled.filter(({ chats }) => chats)
  if (able.length === 0) throw fail('llm.model_no_chat')
  if (able.length === 1) return able[0]!.vendor
  const now = (await tx.maybeOne(chosenModel()))?.vendor ?? ai.provider
  if (able.some(({ vendor }) => vendor === now)) return now
  throw fail('llm.provider_needed', { providers: able.map(({ vendor }) => vendor).join(', ') })
}
