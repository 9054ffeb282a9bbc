"""Small tokenizers of both kinds that encoders have."""

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from containers.encoders.tokenization import TextTokenizer

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def bert_tokenizer(words):
    """BERT's, with these words and word pieces (`##ing`) as its vocabulary, from id 4."""
    vocabulary = {word: number for number, word in enumerate((*SPECIAL, *words))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return tokenizer


def roberta_tokenizer(sentences):
    """RoBERTa's, byte-level, learnt from these sentences."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "<pad>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return tokenizer


def bert(words):
    return TextTokenizer(bert_tokenizer(words))
