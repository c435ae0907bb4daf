/** Kinds of input and output of models. */
export const MODALITIES = ['text', 'image', 'audio', 'video'] as const
