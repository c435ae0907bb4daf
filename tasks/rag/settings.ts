import { z } from 'zod'

/** Settings of retrieval. */

export const ragShape = {
  RAG_ROOT: z.string().min(1).default('.'),
  RAG_EMBEDDINGS: z.enum(['local', 'openai', 'lexical']).default('local'),
  RAG_MODEL: z
    .string()
    .regex(/^[\w.-]+(\/[\w.-]+)?$/, 'must be a name such as Xenova/all-MiniLM-L6-v2')
    .refine((name) => !name.includes('..'), 'must be a name such as Xenova/all-MiniLM-L6-v2')
    .optional(),
  RAG_MODEL_DIR: z.string().min(1).optional(),
}

export interface RagSettings {
  /** Folder to which indexing is limited. */
  readonly root: string
  readonly embeddings: 'local' | 'openai' | 'lexical'
  /** The embedding model; null if embeddings are disabled. */
  readonly model: string | null
  /** Folder with one subfolder per model; undefined uses the cache, then the hub. */
  readonly modelDir: string | undefined
}

const EMBEDDING_MODELS = { local: 'Xenova/all-MiniLM-L6-v2', openai: 'text-embedding-3-small', lexical: null }

export function buildRagSettings(env: z.output<z.ZodObject<typeof ragShape>>): RagSettings {
  const embeddings = env.RAG_EMBEDDINGS
  return {
    root: env.RAG_ROOT,
    embeddings,
    model: embeddings === 'lexical' ? null : (env.RAG_MODEL ?? EMBEDDING_MODELS[embeddings]),
    modelDir: env.RAG_MODEL_DIR,
  }
}
