import { readFileSync } from 'node:fs'
import { AI_PROVIDERS } from '../tasks/ai/providers.ts'
import { readModelsDev } from '../tasks/llm/models-dev.ts'

/**
 * `npm run catalog -- FILE`: of a list of models.dev, such as https://models.dev/api.json, prints the seed (`sql/seeds/llm.sql`) that
 * makes the six providers' models the built-in ones.
 */

const [file] = process.argv.slice(2)
if (file === undefined) throw new Error('Usage: npm run catalog -- FILE')
const list = readModelsDev(readFileSync(file, 'utf8'))
const place = (vendor: string): number => (AI_PROVIDERS as readonly string[]).indexOf(vendor)
const vendors = list.vendors.filter(({ id }) => place(id) !== -1).sort((a, b) => place(a.id) - place(b.id))
const models = list.models
  .filter(({ vendor }) => place(vendor) !== -1)
  .sort((a, b) => place(a.vendor) - place(b.vendor) || (a.model_id < b.model_id ? -1 : 1))
const day = new Date().toISOString().slice(0, 10)
process.stdout.write(`select llm_apply($list$${JSON.stringify({ vendors }).slice(0, -1)}, "models": [
${models.map((model) => JSON.stringify(model)).join(',\n')}
]}$list$, 'built-in', null, least('${day}', (now() at time zone 'UTC')::date));
`)
