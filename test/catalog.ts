import { readFileSync } from 'node:fs'
import { AI_PROVIDERS } from '../tasks/ai/providers.ts'
import { readModelsDev } from '../tasks/llm/models-dev.ts'

/**
 * Converts a models.dev list, such as https://models.dev/api.json, to the seed `sql/seeds/llm.sql` (`npm run catalog --
 * FILE`). The seed makes the models of the six providers the built-in ones.
 */

const [file] = process.argv.slice(2)
if (file === undefined) throw new Error('Usage: npm run catalog -- FILE')
const list = readModelsDev(readFileSync(file, 'utf8'))
const vendorIndex = (vendor: string): number => (AI_PROVIDERS as readonly string[]).indexOf(vendor)
const vendors = list.vendors
  .filter(({ id }) => vendorIndex(id) !== -1)
  .sort((a, b) => vendorIndex(a.id) - vendorIndex(b.id))
const models = list.models
  .filter(({ vendor }) => vendorIndex(vendor) !== -1)
  .sort((a, b) => vendorIndex(a.vendor) - vendorIndex(b.vendor) || (a.model_id < b.model_id ? -1 : 1))
const day = new Date().toISOString().slice(0, 10)
process.stdout.write(`select llm_apply($list$${JSON.stringify({ vendors }).slice(0, -1)}, "models": [
${models.map((model) => JSON.stringify(model)).join(',\n')}
]}$list$, 'built-in', null, least('${day}', (now() at time zone 'UTC')::date));
`)
