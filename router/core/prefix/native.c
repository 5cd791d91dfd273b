/* The Python face of prefix_index.c and siphash.h, on the stable ABI of Python 3.11. */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "prefix_index.h"
#include "siphash.h"

typedef struct {
    PyObject_HEAD
    PrefixIndex *index;
} IndexObject;

/* ---- arguments ---- */

static bool parse_count(PyObject *object, const char *name, unsigned long most, uint32_t *count)
{
    long long value = PyLong_AsLongLong(object);
    if (value == -1 && PyErr_Occurred())
        return false;
    if (value < 1) {
        PyErr_Format(PyExc_ValueError, "%s is %lld, but must be at least 1", name, value);
        return false;
    }
    if ((unsigned long long)value > most) {
        PyErr_Format(PyExc_ValueError, "%s is %lld, but must be at most %lu", name, value, most);
        return false;
    }
    *count = (uint32_t)value;
    return true;
}

static bool parse_slot(IndexObject *self, PyObject *object, uint32_t *slot)
{
    long value = PyLong_AsLong(object);
    if (value == -1 && PyErr_Occurred())
        return false;
    if (value < 0 || value >= (long)PREFIX_MAX_INSTANCES || !prefix_index_has(self->index, (uint32_t)value)) {
        PyErr_Format(PyExc_IndexError, "no instance in slot %ld", value);
        return false;
    }
    *slot = (uint32_t)value;
    return true;
}

/* On success the caller releases the buffer. */
static bool parse_chain(PyObject *object, Py_buffer *buffer, Chain *chain)
{
    if (PyObject_GetBuffer(object, buffer, PyBUF_SIMPLE) < 0)
        return false;
    if (buffer->len % 8) {
        PyErr_Format(PyExc_ValueError, "a chain is whole 8-byte block hashes, but this one has %zd bytes", buffer->len);
        PyBuffer_Release(buffer);
        return false;
    }
    *chain = (Chain){buffer->buf, (size_t)buffer->len / 8};
    if (chain->blocks > UINT32_MAX)
        chain->blocks = UINT32_MAX;
    return true;
}

static bool check_arity(const char *name, Py_ssize_t given, Py_ssize_t wanted)
{
    if (given == wanted)
        return true;
    PyErr_Format(PyExc_TypeError, "%s() takes %zd arguments (%zd given)", name, wanted, given);
    return false;
}

static bool parse_slot_and_chain(IndexObject *self, const char *name, PyObject *const *args, Py_ssize_t nargs,
                                 uint32_t *slot, Py_buffer *buffer, Chain *chain)
{
    return check_arity(name, nargs, 2) && parse_slot(self, args[0], slot) && parse_chain(args[1], buffer, chain);
}

/* ---- PrefixIndex ---- */

static PyObject *index_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"max_blocks", NULL};
    PyObject *given = NULL;
    uint32_t max_blocks = PREFIX_DEFAULT_BLOCKS;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:PrefixIndex", names, &given))
        return NULL;
    if (given && !parse_count(given, "max_blocks", PREFIX_MAX_BLOCKS, &max_blocks))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    IndexObject *self = (IndexObject *)allocate(type, 0);
    if (!self)
        return NULL;
    self->index = prefix_index_new(max_blocks);
    if (!self->index) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void index_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    prefix_index_free(((IndexObject *)object)->index);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyObject *index_add_instance(IndexObject *self, PyObject *capacity)
{
    uint32_t capacity_blocks;
    if (!parse_count(capacity, "capacity_blocks", UINT32_MAX, &capacity_blocks))
        return NULL;
    int slot = prefix_index_add(self->index, capacity_blocks);
    if (slot < 0)
        return PyErr_Format(PyExc_ValueError, "the index holds %u instances at most", PREFIX_MAX_INSTANCES);
    return PyLong_FromLong(slot);
}

static PyObject *index_remove_instance(IndexObject *self, PyObject *object)
{
    uint32_t slot;
    if (!parse_slot(self, object, &slot))
        return NULL;
    prefix_index_remove(self->index, slot);
    Py_RETURN_NONE;
}

static PyObject *index_clear(IndexObject *self, PyObject *object)
{
    uint32_t slot;
    if (!parse_slot(self, object, &slot))
        return NULL;
    prefix_index_clear(self->index, slot);
    Py_RETURN_NONE;
}

static PyObject *index_set_capacity(IndexObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    uint32_t slot, capacity_blocks;
    if (!check_arity("set_capacity", nargs, 2) || !parse_slot(self, args[0], &slot) ||
        !parse_count(args[1], "capacity_blocks", UINT32_MAX, &capacity_blocks))
        return NULL;
    prefix_index_set_capacity(self->index, slot, capacity_blocks);
    Py_RETURN_NONE;
}

static PyObject *index_insert(IndexObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    uint32_t slot;
    Py_buffer buffer;
    Chain chain;
    if (!parse_slot_and_chain(self, "insert", args, nargs, &slot, &buffer, &chain))
        return NULL;
    bool complete = prefix_index_insert(self->index, slot, chain);
    PyBuffer_Release(&buffer);
    if (!complete)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *index_store(IndexObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    uint32_t slot;
    Py_buffer buffer;
    Chain chain;
    if (!parse_slot_and_chain(self, "store", args, nargs, &slot, &buffer, &chain))
        return NULL;
    bool complete = prefix_index_store(self->index, slot, chain);
    PyBuffer_Release(&buffer);
    if (!complete)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *index_discard(IndexObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    uint32_t slot;
    Py_buffer buffer;
    Chain chain;
    if (!parse_slot_and_chain(self, "discard", args, nargs, &slot, &buffer, &chain))
        return NULL;
    prefix_index_discard(self->index, slot, chain);
    PyBuffer_Release(&buffer);
    Py_RETURN_NONE;
}

static PyObject *index_match(IndexObject *self, PyObject *object)
{
    uint32_t depths[PREFIX_MAX_INSTANCES];
    Py_buffer buffer;
    Chain chain;
    if (!parse_chain(object, &buffer, &chain))
        return NULL;
    prefix_index_match(self->index, chain, depths);
    PyBuffer_Release(&buffer);
    Py_ssize_t slots = prefix_index_slots(self->index);
    PyObject *list = PyList_New(slots);
    for (Py_ssize_t slot = 0; list && slot < slots; slot++) {
        PyObject *depth = PyLong_FromUnsignedLong(depths[slot]);
        if (!depth || PyList_SetItem(list, slot, depth) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *index_resident(IndexObject *self, PyObject *object)
{
    uint32_t slot;
    if (!parse_slot(self, object, &slot))
        return NULL;
    return PyLong_FromUnsignedLong(prefix_index_resident(self->index, slot));
}

static PyObject *index_check_integrity(IndexObject *self, PyObject *Py_UNUSED(none))
{
    const char *fault = prefix_index_fault(self->index);
    if (!fault)
        Py_RETURN_NONE;
    PyObject *errors = PyImport_ImportModule("router.core.errors");
    PyObject *type = errors ? PyObject_GetAttrString(errors, "PrefixIndexFault") : NULL;
    if (type)
        PyErr_SetString(type, fault);
    Py_XDECREF(type);
    Py_XDECREF(errors);
    return NULL;
}

static PyObject *index_blocks(IndexObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(prefix_index_blocks(self->index));
}

static PyObject *index_entries(IndexObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(prefix_index_entries(self->index));
}

static PyObject *index_capacity(IndexObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(prefix_index_capacity(self->index));
}

static PyObject *index_memory_bytes(IndexObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSize_t(prefix_index_memory_bytes(self->index));
}

static PyObject *index_evictions(IndexObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLongLong(prefix_index_evictions(self->index));
}

#define METHOD(name, flags, doc) {#name, (PyCFunction)(void (*)(void))index_##name, flags, PyDoc_STR(doc)}
#define GAUGE(name, doc) {#name, (getter)index_##name, NULL, PyDoc_STR(doc), NULL}

static PyMethodDef index_methods[] = {
    METHOD(add_instance, METH_O, "Give a new instance the smallest free slot."),
    METHOD(remove_instance, METH_O, "Forget an instance and free its slot."),
    METHOD(clear, METH_O, "Forget every block of an instance."),
    METHOD(set_capacity, METH_FASTCALL, "Change an instance's capacity; what is too much is evicted at once."),
    METHOD(insert, METH_FASTCALL, "Expect a chain at an instance: touch, add, evict least recently used leaves."),
    METHOD(store, METH_FASTCALL, "Take in an engine's own word that it stored blocks."),
    METHOD(discard, METH_FASTCALL, "Take in an engine's own word that it removed blocks."),
    METHOD(match, METH_O, "Return, by slot, how many leading blocks of the chain each instance holds."),
    METHOD(resident, METH_O, "Return how many blocks an instance holds."),
    METHOD(check_integrity, METH_NOARGS, "Raise PrefixIndexFault if anything that is kept twice disagrees."),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef index_gauges[] = {
    GAUGE(blocks, "Distinct blocks that are resident anywhere."),
    GAUGE(entries, "Blocks summed over instances: what capacity bounds."),
    GAUGE(capacity, "The most entries that are ever kept."),
    GAUGE(memory_bytes, "Memory in bytes."),
    GAUGE(evictions, "Entries that had to make room, since the beginning."),
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot index_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("See router.core.prefix.PrefixIndex.")},
    {Py_tp_new, index_new},
    {Py_tp_dealloc, index_dealloc},
    {Py_tp_methods, index_methods},
    {Py_tp_getset, index_gauges},
    {0, NULL},
};

static PyType_Spec index_spec = {
    .name = "router.core.prefix._native.NativePrefixIndex",
    .basicsize = sizeof(IndexObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = index_slots,
};

/* ---- hash_chain ---- */

/* Take in a key of any length: its length, then its bytes, padded with zeros to whole words. */
static void take_key(SipState *state, const unsigned char *key, size_t length)
{
    sip_take(state, length);
    for (; length >= 8; key += 8, length -= 8)
        sip_take(state, sip_word(key));
    unsigned char last[8] = {0};
    memcpy(last, key, length);
    sip_take(state, sip_word(last));
}

static void write_hash(unsigned char *out, uint64_t hash)
{
    for (int i = 0; i < 8; i++)
        out[i] = (unsigned char)(hash >> 8 * i);
}

static void hash_blocks(SipState state, const unsigned char *text, size_t words_per_block, size_t blocks,
                        unsigned char *out)
{
    for (size_t block = 0; block < blocks; block++, out += 8) {
        for (size_t word = 0; word < words_per_block; word++, text += 8)
            sip_take(&state, sip_word(text));
        write_hash(out, sip_read(state));
    }
}

static PyObject *hash_chain(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *seed;
    Py_ssize_t seed_bytes, block_bytes, max_blocks;
    Py_buffer key, text;
    if (!PyArg_ParseTuple(args, "y#y*y*nn:hash_chain", &seed, &seed_bytes, &key, &text, &block_bytes, &max_blocks))
        return NULL;
    PyObject *chain = NULL;
    if (seed_bytes != 16 || block_bytes < 8 || block_bytes % 8 || max_blocks < 0) {
        PyErr_SetString(PyExc_ValueError, "the seed is 16 bytes, block_bytes a positive multiple of 8");
    } else {
        Py_ssize_t blocks = text.len / block_bytes < max_blocks ? text.len / block_bytes : max_blocks;
        chain = PyBytes_FromStringAndSize(NULL, blocks * 8);
        if (chain) {
            SipState state = sip_start((const unsigned char *)seed);
            take_key(&state, key.buf, (size_t)key.len);
            hash_blocks(state, text.buf, (size_t)block_bytes / 8, (size_t)blocks,
                        (unsigned char *)PyBytes_AsString(chain));
        }
    }
    PyBuffer_Release(&key);
    PyBuffer_Release(&text);
    return chain;
}

/* ---- hash_tokens ---- */

/* A block's hash stands for its parent's hash and its tokens; the last word of an odd number of tokens is half zeros. */
static uint64_t hash_token_block(SipState state, uint64_t parent, const unsigned char *tokens, size_t bytes)
{
    sip_take(&state, parent);
    for (; bytes >= 8; tokens += 8, bytes -= 8)
        sip_take(&state, sip_word(tokens));
    if (bytes) {
        unsigned char last[8] = {0};
        memcpy(last, tokens, bytes);
        sip_take(&state, sip_word(last));
    }
    return sip_read(state);
}

static PyObject *hash_tokens(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    Py_buffer seed, tokens;
    if (!check_arity("hash_tokens", nargs, 4))
        return NULL;
    uint64_t parent = PyLong_AsUnsignedLongLong(args[1]);
    Py_ssize_t block_bytes = PyLong_AsSsize_t(args[3]);
    if (PyErr_Occurred() || PyObject_GetBuffer(args[0], &seed, PyBUF_SIMPLE) < 0)
        return NULL;
    if (PyObject_GetBuffer(args[2], &tokens, PyBUF_SIMPLE) < 0) {
        PyBuffer_Release(&seed);
        return NULL;
    }
    PyObject *chain = NULL;
    if (seed.len != 16 || block_bytes < 1) {
        PyErr_SetString(PyExc_ValueError, "the seed is 16 bytes, block_bytes positive");
    } else if ((chain = PyBytes_FromStringAndSize(NULL, tokens.len / block_bytes * 8))) {
        const unsigned char *next = tokens.buf;
        unsigned char *out = (unsigned char *)PyBytes_AsString(chain);
        SipState state = sip_start(seed.buf);
        for (Py_ssize_t block = tokens.len / block_bytes; block; block--, next += block_bytes, out += 8) {
            parent = hash_token_block(state, parent, next, (size_t)block_bytes);
            write_hash(out, parent);
        }
    }
    PyBuffer_Release(&seed);
    PyBuffer_Release(&tokens);
    return chain;
}

/* ---- common_blocks ---- */

static size_t common_bytes(const unsigned char *first, const unsigned char *second, size_t most)
{
    const size_t step = 512; /* memcmp is fast, but does not say where */
    size_t at = 0;
    while (at + step <= most && !memcmp(first + at, second + at, step))
        at += step;
    while (at + 8 <= most && !memcmp(first + at, second + at, 8))
        at += 8;
    return at;
}

static PyObject *common_blocks(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    Py_buffer first, second;
    if (!check_arity("common_blocks", nargs, 2) || PyObject_GetBuffer(args[0], &first, PyBUF_SIMPLE) < 0)
        return NULL;
    if (PyObject_GetBuffer(args[1], &second, PyBUF_SIMPLE) < 0) {
        PyBuffer_Release(&first);
        return NULL;
    }
    size_t most = (size_t)(first.len < second.len ? first.len : second.len);
    size_t blocks = common_bytes(first.buf, second.buf, most) / 8;
    PyBuffer_Release(&first);
    PyBuffer_Release(&second);
    return PyLong_FromSize_t(blocks);
}

/* ---- module ---- */

static PyMethodDef module_methods[] = {
    {"hash_chain", hash_chain, METH_VARARGS, PyDoc_STR("Hash with SipHash-1-3; see router.core.prefix.chain.")},
    {"hash_tokens", (PyCFunction)(void (*)(void))hash_tokens, METH_FASTCALL,
     PyDoc_STR("Hash blocks of tokens after their parent; see router.core.prefix.token_chain.")},
    {"common_blocks", (PyCFunction)(void (*)(void))common_blocks, METH_FASTCALL,
     PyDoc_STR("Return how many leading hashes two chains share.")},
    {NULL, NULL, 0, NULL},
};

static int module_exec(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&index_spec);
    if (!type)
        return -1;
    int result = PyModule_AddType(module, (PyTypeObject *)type);
    Py_DECREF(type);
    return result;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
    {0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_native",
    .m_doc = PyDoc_STR("The prefix index and the prompt hash, compiled."),
    .m_methods = module_methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&module_definition);
}
