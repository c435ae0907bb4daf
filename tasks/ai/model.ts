import { type AiProvider, isAiProvider } from './providers.ts'
import type { AiSettings } from './settings.ts'

/** A model and its provider. */
export interface ModelRef {
  readonly provider: AiProvider
  readonly model: string
}

/**
 * Returns the model of an agent. `model_id` names a model of the current provider, or of another one with its prefix,
 * such as `anthropic/claude-haiku-4-5`. Null selects the current model: the admin's choice, else the one in the
 * settings.
 */
export function resolveModel(
  settings: AiSettings,
  chosen: { readonly vendor: string; readonly model_id: string } | null,
  modelId: string | null,
): ModelRef {
  const current: ModelRef =
    chosen !== null && isAiProvider(chosen.vendor)
      ? { provider: chosen.vendor, model: chosen.model_id }
      : { provider: settings.provider, model: settings.model }
  if (modelId === null) return current
  const slash = modelId.indexOf('/')
  const prefix = modelId.slice(0, Math.max(0, slash))
  if (isAiProvider(prefix) && slash < modelId.length - 1)
    return { provider: prefix, model: modelId.slice(slash + 1) }
  return { provider: current.provider, model: modelId }
}

/**
 * Returns the model to ask if `first` fails: that of the agent, else the one in the settings. Null if there is none, or
 * if it is the same.
 */
export function resolveFallback(
  settings: AiSettings,
  chosen: { readonly vendor: string; readonly model_id: string } | null,
  modelId: string | null,
  first: ModelRef,
): ModelRef | null {
  const id = modelId ?? settings.fallbackModel
  if (id === null) return null
  const fallback = resolveModel(settings, chosen, id)
  return fallback.provider === first.provider && fallback.model === first.model ? null : fallback
}
