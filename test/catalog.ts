import { readFileSync } from 'node:fs'
import { AI_PROVIDERS } from '../tasks/ai/providers.ts'
import { parseModelsDev } from '../tasks/llm/models-dev.ts'

/**
 * Converts a models.dev list, such as https://models.dev/api.json, to the seed `sql/llm/seeds.sql` (`npm run catalog --
 * FILE`). The seed holds the built-in models, which are those of six providers.
 */

const [file] = process.argv.slice(2)
if (file === undefined) throw new Error('Usage: npm run catalog -- FILE')
const list = parseModelsDev(readFileSync(file, 'utf8'))
const vendorIndexOf = (vendor: string): number => (AI_PROVIDERS as readonly string[]).indexOf(vendor)
const vendors = list.vendors
  .filter(({ id }) => vendorIndexOf(id) !== -1)
  .sort((a, b) => vendorIndexOf(a.id) - vendorIndexOf(b.id))
const models = list.models
  .filter(({ vendor }) => vendorIndexOf(vendor) !== -1)
  .sort((a, b) => vendorIndexOf(a.vendor) - vendorIndexOf(b.vendor) || (a.model_id < b.model_id ? -1 : 1))
const today = new Date().toISOString().slice(0, 10)
process.stdout.write(`select llm_apply($list$${JSON.stringify({ vendors }).slice(0, -1)}, "models": [
${models.map((model) => JSON.stringify(model)).join(',\n')}
]}$list$, 'built-in', null, least('${today}', (now() at time zone 'UTC')::date));
`)
