import type { KnownModel, ModelList } from '../../sql/llm.ts'
import { AI_PROVIDERS } from '../ai/providers.ts'
import { refused } from './models-dev.ts'

/**
 * Whether a list can be true. A list that was cut short, is about something else or counts in other units would switch
 * models off or make every cost wrong; it says nothing against any one model, so it is refused as a whole.
 */

// Of the models that a provider had, as many may go at once.
const MOST_GONE = 0.5
// Prices change, all of them at once don't: what changes tenfold in many places is the unit.
const JUMP = 10
const MOST_JUMPS = 0.2
const FEW_JUMPS = 3

/** @throws fail('llm.list_refused') with what can't be. */
export function checkPlausible(list: ModelList, known: readonly KnownModel[]): void {
  const listed = new Map(list.models.map((model) => [`${model.vendor} ${model.model_id}`, model]))
  for (const provider of AI_PROVIDERS) {
    const chats = list.models.some(
      ({ vendor, disabled, input_modalities, output_modalities }) =>
        vendor === provider &&
        !disabled &&
        input_modalities.includes('text') &&
        output_modalities.includes('text'),
    )
    if (!chats) throw refused(`it has no model of ${provider} that reads and writes text`)
    const had = known.filter(({ vendor, synced }) => vendor === provider && synced)
    const gone = had.filter(({ model_id }) => !listed.has(`${provider} ${model_id}`))
    if (gone.length > had.length * MOST_GONE)
      throw refused(`of the ${had.length} models of ${provider} it lacks ${gone.length}`)
  }
  const jumps = known.map(({ vendor, model_id, input, output }) => {
    const price = listed.get(`${vendor} ${model_id}`)?.price
    if (price == null || input === null || output === null) return null
    return jumped(input, Number(price.input)) || jumped(output, Number(price.output))
  })
  const compared = jumps.filter((jump) => jump !== null)
  const count = compared.filter(Boolean).length
  if (count > FEW_JUMPS && count > compared.length * MOST_JUMPS)
    throw refused(`${count} of ${compared.length} prices are ${JUMP} times what they were, or a ${JUMP}th`)
}

const jumped = (before: number, now: number): boolean =>
  before > 0 && now > 0 && (now >= before * JUMP || now <= before / JUMP)
