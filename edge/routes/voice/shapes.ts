import { z } from 'zod'
import { parseLanguageTag } from '../../../tasks/voice/languages.ts'

const Provider = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    requires_api_key: z.boolean(),
    api_key_env_var: z.string().nullable(),
    is_local: z.boolean(),
    /** True if the provider's API key is set. */
    configured: z.boolean(),
  })
  .meta({ id: 'VoiceProvider' })

export const Providers = z.array(Provider)

export const Model = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    provider_id: z.string(),
    quality: z.enum(['standard', 'high']),
    /** Date on which the provider shuts the model down; null if none is announced. */
    retires_on: z.iso.date().nullable(),
  })
  .meta({ id: 'VoiceModel' })

export const Voice = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    provider_id: z.string(),
    category: z.enum(['general', 'conversation', 'narration']),
    gender: z.enum(['female', 'male', 'neutral']),
    preview_text: z.string(),
    /** Ids of the models that support the voice. */
    models: z.array(z.string()),
  })
  .meta({ id: 'Voice' })

const Id = z.string().min(1).max(100)
/** A BCP 47 tag, in canonical form. */
export const Language = z
  .string()
  .max(100)
  .refine((tag) => parseLanguageTag(tag) !== null, {
    error: 'must be a BCP 47 language tag such as en, pt-BR or zh-Hans',
    abort: true,
  })
  .overwrite((tag) => parseLanguageTag(tag) ?? tag)

const Speed = z.number().min(0.25).max(4)
export const Text = z.string().trim().min(1).max(1000)

export const VoiceSettings = z
  .strictObject({
    tts_provider: Id,
    tts_model: Id,
    tts_voice: Id,
    tts_speed: Speed,
    stt_provider: Id,
    stt_model: Id,
    /** Null means automatic detection. */
    stt_language: Language.nullable(),
  })
  .meta({ id: 'VoiceSettings' })

export const VoiceSettingsChange = VoiceSettings.partial().meta({ id: 'VoiceSettingsChange' })

export const ProvidersSummary = z
  .strictObject({
    tts: z.strictObject({
      providers: z.array(Provider.extend({ models: z.array(Model), voices: z.array(Voice) })),
    }),
    stt: z.strictObject({ providers: z.array(Provider.extend({ models: z.array(Model) })) }),
    settings: VoiceSettings,
  })
  .meta({ id: 'VoiceSummary' })

export const PreviewRequest = z
  .strictObject({ voice_id: Id, text: Text.optional(), speed: Speed.optional(), model: Id.optional() })
  .meta({ id: 'PreviewRequest' })

// The setting MAX_SPEECH_CHARACTERS may be lower.
const MAX_SPEECH_CHARACTERS = 1_000_000

export const WholeSpeechRequest = z
  .strictObject({
    text: z.string().trim().min(1).max(MAX_SPEECH_CHARACTERS),
    voice_id: Id.optional(),
    provider: Id.optional(),
    model: Id.optional(),
    speed: Speed.optional(),
    language: Language.optional(),
  })
  .meta({ id: 'SpeechRequest' })

/** Query parameters of a preview request. */
export const PreviewQuery = z.object({
  text: Text.optional(),
  speed: z
    .string()
    .regex(/^\d{1,2}(\.\d{1,6})?$/, 'must be a number')
    .transform(Number)
    .pipe(Speed)
    .meta({ type: 'number', minimum: 0.25, maximum: 4 })
    .optional(),
  model: Id.optional(),
})

const Prompt = z.string().trim().min(1).max(4000)

const recognitionFields = { model: Id.optional(), language: Language.optional(), prompt: Prompt.optional() }

/** Optional form fields that accompany an uploaded file. */
export const UploadFields = z.object(recognitionFields)
export type RecognitionFields = z.output<typeof UploadFields>

export const TranscriptionUpload = z
  .strictObject({ file: z.string().meta({ format: 'binary' }), ...recognitionFields })
  .meta({ id: 'TranscriptionUpload' })

export const TranscriptionRequest = z
  .strictObject({ document_id: z.int().min(1), ...recognitionFields })
  .meta({ id: 'TranscriptionRequest' })
