import type { KnownModel, ModelList } from '../../sql/llm/models.ts'
import { AI_PROVIDERS } from '../ai/providers.ts'
import { createListRefusal } from './models-dev.ts'

/**
 * Checks that a model list is plausible. A truncated list, other content or other units would disable models or make
 * every cost wrong. Rejects the whole list, because the error is not in a single model.
 */

// Maximum share of a provider's models that a list may drop.
const MAX_DROPPED_SHARE = 0.5
// Prices rarely change together: if many change by this factor, their unit has probably changed.
const JUMP_FACTOR = 10
const MAX_JUMP_SHARE = 0.2
const TOLERATED_JUMPS = 3

/** Compares a list with the known models. @throws fail('llm.list_refused') with the reason if it is implausible. */
export function checkPlausibility(list: ModelList, known: readonly KnownModel[]): void {
  const listed = new Map(list.models.map((model) => [`${model.vendor} ${model.model_id}`, model]))
  for (const provider of AI_PROVIDERS) {
    const hasChatModel = list.models.some(
      ({ vendor, disabled, input_modalities, output_modalities }) =>
        vendor === provider &&
        !disabled &&
        input_modalities.includes('text') &&
        output_modalities.includes('text'),
    )
    if (!hasChatModel) throw createListRefusal(`it has no model of ${provider} that reads and writes text`)
    const had = known.filter(({ vendor, synced }) => vendor === provider && synced)
    const missing = had.filter(({ model_id }) => !listed.has(`${provider} ${model_id}`))
    if (missing.length > had.length * MAX_DROPPED_SHARE)
      throw createListRefusal(`it lacks ${missing.length} of the ${had.length} models of ${provider}`)
  }
  const jumps = known.map(({ vendor, model_id, input, output }) => {
    const price = listed.get(`${vendor} ${model_id}`)?.price
    if (price == null || input === null || output === null) return null
    return hasJumped(input, Number(price.input)) || hasJumped(output, Number(price.output))
  })
  const compared = jumps.filter((jump) => jump !== null)
  const count = compared.filter(Boolean).length
  if (count > TOLERATED_JUMPS && count > compared.length * MAX_JUMP_SHARE)
    throw createListRefusal(
      `${count} of ${compared.length} prices changed by a factor of ${JUMP_FACTOR} or more`,
    )
}

const hasJumped = (before: number, now: number): boolean =>
  before > 0 && now > 0 && (now >= before * JUMP_FACTOR || now <= before / JUMP_FACTOR)
