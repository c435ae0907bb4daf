import { after, describe, test } from 'node:test'
import { connect } from '../../sql/connections/driver.ts'
import { readModelFacts } from '../../sql/llm/models.ts'
import { readCurrent, readModels, readPrices } from '../../sql/llm/reads.ts'
import { createTestDatabase } from '../database.ts'
import { assertReadByIndex, assertWriteByIndex, planRead, testReads } from './plans-help.ts'

/** The catalog uses an index, even with all models of models.dev. */

const { query, url } = await createTestDatabase()
await query(`
  insert into llm_vendor (id, name) select 'v' || n, 'v' from generate_series(1, 100) n`)
await query(`
  insert into llm_model (vendor, model_id, title, context_window, max_output, input_modalities, output_modalities,
    modalities, reasoning, released_on, disabled)
  select id, 'model-' || n, 't', 1, 1, '{text}', '{text}', '{text}', false, '2025-01-01'::date + n, n % 10 = 0
  from llm_vendor, generate_series(1, 30) n`)
await query(`
  insert into llm_price (vendor, model_id, valid_from, input, output)
  select vendor, model_id, '2026-01-01'::date + n, 1, 1 from llm_model, generate_series(1, 3) n on conflict do nothing`)
await query('analyze')
const client = await connect({ url, applicationName: 'plans' })
after(() => client.end())

const reads = [
  planRead('prices', readPrices, 'v3', 'model-7', 1000),
  planRead('the current model', readCurrent, 'v3', 'model-7', 0.7, 1000),
]
describe('reads by index', () => testReads(client, reads))

// Searches by name scan all models, which takes 5 ms.
test('the latest models', () =>
  assertReadByIndex(client, readModels, [null, null, null, false, null, 0, 50], ['auto']))

test('the price on a day', () =>
  assertWriteByIndex(client, () => readModelFacts('v3', 'model-7', '2026-02-01'), 'llm_'))
