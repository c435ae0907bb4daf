import { z } from 'zod'
import { type Queries, readWithin } from '../../sql/db.ts'
import { fail } from '../../sql/errors.ts'
import {
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
import { area, json, route } from '../pipeline/route.ts'
import { count } from '../pipeline/schemas.ts'
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

// What SPEC returns whole is capped.
const MOST_VENDORS = 1000

/** The catalog of models, and which of them is current. */
export const llm = area('llm', '/llm', { auth: 'open' }, [
  route({
    method: 'get',
    path: '/status',
    summary: 'The catalog in numbers, and where it is from',
    description: `Disabled models are not counted. Deployments are the models of the providers that can be called from \
here. A list that was refused is named with its reason until another one is taken.`,
    response: CatalogStatus,
    handle: async ({ edge }) => json((await edge.reader.text(readCatalogStatus, [AI_PROVIDERS]))!),
  }),

  route({
    method: 'get',
    path: '/vendors',
    summary: 'Who offers models, with how many',
    description: 'By name; at most 1000.',
    response: z.array(VendorCount),
    handle: async ({ edge }) => json((await edge.reader.text(readVendors, [MOST_VENDORS]))!),
  }),

  route({
    method: 'get',
    path: '/modalities',
    summary: 'What models read or write, with how many do',
    response: z.array(ModalityCount),
    handle: async ({ edge }) => json((await edge.reader.text(readModalities, [MODALITIES]))!),
  }),

  route({
    method: 'get',
    path: '/models',
    summary: 'Models, the latest first',
    description: `\`pattern\` is any part of the id or title, in either case, and no wildcard. Prices are of today, in US \
dollars per million tokens; null where nobody knows.`,
    query: z.object({
      pattern: z.string().max(300).optional(),
      vendor: z.string().trim().toLowerCase().max(100).optional(),
      modality: z.enum(MODALITIES).optional(),
      limit: count({ min: 1, max: 200, fallback: 50 }),
      include_disabled: z.stringbool().default(false),
    }),
    response: z.array(Model),
    handle: async ({ query, edge }) => {
      const { pattern = null, vendor, modality = null, limit, include_disabled } = query
      return json(
        (await edge.reader.text(readModels, [pattern, vendor || null, modality, limit, include_disabled]))!,
      )
    },
  }),

  route({
    method: 'get',
    path: '/prices',
    summary: 'What a model has cost, the latest price first',
    description: 'A price holds from its day, in UTC, until the day of the next. At most 1000.',
    query: z.object({ vendor: z.string().trim().toLowerCase().max(100), model_id: z.string().max(200) }),
    response: Prices,
    errors: ['llm.model_missing'],
    handle: async ({ query, edge }) => {
      const text = await edge.reader.text(readPrices, [query.vendor, query.model_id, 1000])
      if (text === null) throw fail('llm.model_missing')
      return json(text)
    },
  }),

  route({
    method: 'get',
    path: '/current',
    summary: 'The model that answers chats, with what the catalog knows of it',
    description: 'What the catalog does not have is null. `chosen`: by an admin, and not by the settings.',
    response: Current,
    handle: async ({ edge }) => json(await current(edge.settings, edge.reader.text)),
  }),

  route({
    method: 'post',
    path: '/current',
    summary: 'Choose the model that answers chats from now on',
    description: `Without \`provider\`, the one that has the model; of several, the current one. What is not given of \
\`temperature\` and \`max_tokens\` is as in the settings.`,
    auth: 'admin',
    body: CurrentRequest,
    response: Current,
    errors: ['llm.model_missing', 'llm.model_disabled', 'llm.model_no_chat', 'llm.provider_needed'],
    repeatable: 'the same model is chosen again',
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
    summary: 'Go back to the model of the settings; answers it',
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
    summary: 'Read the list of models now',
    description: `It is read once a day by itself. A list that is broken or can't be true is refused as a whole; \
\`force\` takes one that differs more from the one before than it should.`,
    auth: 'admin',
    query: z.object({ background: z.string().optional(), force: z.stringbool().default(false) }),
    response: SyncResult,
    errors: ['llm.list_failed', 'llm.list_refused'],
    sideEffect: true,
    task: ({ query }) => newJob(sync, { asked: true, force: query.force }),
  }),
])

async function current({ ai }: Settings, read: Reader['text']): Promise<string> {
  return (await read(readCurrent, [ai.provider, ai.model, ai.temperature, ai.maxTokens]))!
}

/** The provider that a chosen model is asked of. @throws why it can't be. */
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
