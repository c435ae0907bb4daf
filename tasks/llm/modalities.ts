/** What models read and write. */
export const MODALITIES = ['text', 'image', 'audio', 'video'] as const
