import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * A tiny embedding model that tests build themselves: an ONNX file and tokenizer files. The ONNX file contains a table
 * with a row of floats per word (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto). Words of a group have similar
 * vectors.
 */
export const MODEL = 'tests/tiny'
export const DIMENSIONS = 16

const WORD_GROUPS = [
  ['car', 'automobile', 'vehicle'],
  ['cat', 'feline', 'kitten'],
  ['bread', 'loaf', 'bakery'],
  ['ship', 'vessel', 'boat'],
]
const SPECIAL_TOKENS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']

/** Writes the model into a folder that serves as `RAG_MODEL_DIR`. */
export function writeModel(folder: string): void {
  const at = join(folder, MODEL)
  mkdirSync(join(at, 'onnx'), { recursive: true })
  const words = [...SPECIAL_TOKENS, ...WORD_GROUPS.flat()]
  const vocabulary = Object.fromEntries(words.map((word, id) => [word, id]))
  const json = (name: string, value: object): void => writeFileSync(join(at, name), JSON.stringify(value))
  json('config.json', { model_type: 'bert', hidden_size: DIMENSIONS, vocab_size: words.length })
  json('tokenizer_config.json', {
    tokenizer_class: 'BertTokenizer',
    model_max_length: 128,
    pad_token: '[PAD]',
    unk_token: '[UNK]',
    cls_token: '[CLS]',
    sep_token: '[SEP]',
    mask_token: '[MASK]',
    do_lower_case: true,
  })
  json('tokenizer.json', buildTokenizer(vocabulary))
  writeFileSync(join(at, 'onnx', 'model.onnx'), encodeGraph(words.map(vectorOf)))
}

/** Returns the vector of a word. Words of a group share a direction; special and unknown words have almost none. */
function vectorOf(word: string): Float32Array {
  const group = WORD_GROUPS.findIndex((words) => words.includes(word))
  const row = new Float32Array(DIMENSIONS).fill(0.01)
  if (group !== -1) {
    row[group] = 1
    row[WORD_GROUPS.length + WORD_GROUPS[group]!.indexOf(word)] = 0.1
  }
  return row
}

function buildTokenizer(vocabulary: Readonly<Record<string, number>>): object {
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: SPECIAL_TOKENS.map((content, id) => ({
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: {
      type: 'BertNormalizer',
      clean_text: true,
      handle_chinese_chars: true,
      strip_accents: null,
      lowercase: true,
    },
    pre_tokenizer: { type: 'BertPreTokenizer' },
    post_processor: {
      type: 'TemplateProcessing',
      single: [
        { SpecialToken: { id: '[CLS]', type_id: 0 } },
        { Sequence: { id: 'A', type_id: 0 } },
        { SpecialToken: { id: '[SEP]', type_id: 0 } },
      ],
      pair: [
        { SpecialToken: { id: '[CLS]', type_id: 0 } },
        { Sequence: { id: 'A', type_id: 0 } },
        { SpecialToken: { id: '[SEP]', type_id: 0 } },
        { Sequence: { id: 'B', type_id: 1 } },
        { SpecialToken: { id: '[SEP]', type_id: 1 } },
      ],
      special_tokens: {
        '[CLS]': { id: '[CLS]', ids: [2], tokens: ['[CLS]'] },
        '[SEP]': { id: '[SEP]', ids: [3], tokens: ['[SEP]'] },
      },
    },
    decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
    model: {
      type: 'WordPiece',
      unk_token: '[UNK]',
      continuing_subword_prefix: '##',
      max_input_chars_per_word: 100,
      vocab: vocabulary,
    },
  }
}

// Protocol buffers encode the number and wire type of a field, then its value.
const encodeVarint = (value: number): number[] =>
  value < 128 ? [value] : [(value & 127) | 128, ...encodeVarint(value >>> 7)]
const encodeInteger = (field: number, value: number): number[] => [
  ...encodeVarint(field << 3),
  ...encodeVarint(value),
]
const encodeBytes = (field: number, value: Iterable<number>): number[] => {
  const all = [...value]
  return [...encodeVarint((field << 3) | 2), ...encodeVarint(all.length), ...all]
}
const encodeText = (field: number, value: string): number[] => encodeBytes(field, Buffer.from(value))

const [FLOAT, INT64] = [1, 7]

/** Encodes the graph `last_hidden_state = Gather(table, input_ids)`. */
function encodeGraph(rows: readonly Float32Array[]): Uint8Array {
  const raw = Buffer.concat(rows.map((row) => Buffer.from(row.buffer)))
  const table = [
    ...encodeInteger(1, rows.length),
    ...encodeInteger(1, DIMENSIONS),
    ...encodeInteger(2, FLOAT),
    ...encodeText(8, 'table'),
    ...encodeBytes(9, raw),
  ]
  const gather = [
    ...encodeText(1, 'table'),
    ...encodeText(1, 'input_ids'),
    ...encodeText(2, 'last_hidden_state'),
    ...encodeText(4, 'Gather'),
  ]
  const value = (name: string, kind: number, axes: readonly string[]): number[] => {
    const shape = axes.flatMap((axis) => encodeBytes(1, encodeText(2, axis)))
    return [
      ...encodeText(1, name),
      ...encodeBytes(2, encodeBytes(1, [...encodeInteger(1, kind), ...encodeBytes(2, shape)])),
    ]
  }
  const body = [
    ...encodeBytes(1, gather),
    ...encodeText(2, 'tiny'),
    ...encodeBytes(5, table),
    ...encodeBytes(11, value('input_ids', INT64, ['batch', 'length'])),
    ...encodeBytes(11, value('attention_mask', INT64, ['batch', 'length'])),
    ...encodeBytes(12, value('last_hidden_state', FLOAT, ['batch', 'length', 'width'])),
  ]
  return Uint8Array.from([
    ...encodeInteger(1, 8),
    ...encodeBytes(7, body),
    ...encodeBytes(8, [...encodeText(1, ''), ...encodeInteger(2, 13)]),
  ])
}
