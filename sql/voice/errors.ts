/** Errors of speech synthesis and transcription. `errors.ts` adds them to its table. */
export const voiceErrors = {
  'voice.provider_missing': { detail: 'Voice provider not found' },
  'voice.voice_missing': { detail: 'Voice not found' },
  'voice.unknown': { detail: '{field} cannot be {id}; it must be one of {known}' },
  'voice.preview_missing': { detail: 'The preview was removed while it was being generated or read' },
  'voice.speech_missing': { detail: 'Speech not found' },
  'voice.speech_too_long': {
    detail: 'The text has {size} characters; at most {limit} can be spoken (MAX_SPEECH_CHARACTERS)',
  },
  'voice.transcription_missing': { detail: 'Transcription not found' },
  'voice.no_subtitles': { detail: 'The transcription has no subtitles: {reason}' },
  'voice.not_audio': {
    detail:
      'A file of type {type} cannot be transcribed; it must be FLAC, MP3, MP4, MPEG, M4A, Ogg, WAV or WebM',
  },
  'voice.audio_too_large': {
    detail:
      'The recording has more than {limit} bytes or is too long for the model, and cannot be cut: {reason}. FLAC, MP3, MP4, M4A, Ogg, WAV and WebM can be cut',
  },
  'voice.audio_undecodable': {
    detail: 'The provider could not decode the audio: the file is damaged or its format is unsupported',
  },
  'voice.prompt_unsupported': { detail: 'The model {model} does not accept a prompt' },
} as const
