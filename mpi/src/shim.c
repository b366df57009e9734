/* The MPI calls of the package cortado-mpi.
 *
 * Each MPI library has its own C types for communicators, requests and statuses. Rust code calls
 * these functions instead of MPI's, because their arguments have the same types for every library.
 * Each function except the last two returns MPI_SUCCESS or an MPI error code. */

#include <mpi.h>
#include <stdlib.h>

/* A copy of MPI_COMM_WORLD, so that no other code of the process receives messages of cortado. */
static MPI_Comm processes = MPI_COMM_NULL;

/* Whether this code, and not other code of the process, has initialized MPI. */
static int is_initializer = 0;

/* The exchange in progress: the send, the receive, and the process with which this one exchanges. */
static MPI_Request send_request = MPI_REQUEST_NULL, receive_request = MPI_REQUEST_NULL;
static int peer_rank;
static void *receive_buffer;
static int receive_capacity;
/* A buffer for a message that exceeds the receive buffer. */
static void *excess = NULL;
/* The length of the message to receive, in bytes; -1 until the message arrives. */
static int received_length = -1;

/* Writes 2 to `thread_level` if any thread may call MPI at any time, 1 if any thread may call MPI
 * but only one at a time, and 0 if only the calling thread may call MPI. */
int cortado_mpi_init(int *thread_level)
{
    int initialized = 0, provided = MPI_THREAD_SINGLE;
    int code = MPI_Initialized(&initialized);
    is_initializer = !initialized;
    if (code == MPI_SUCCESS)
        code = initialized ? MPI_Query_thread(&provided)
                           : MPI_Init_thread(0, 0, MPI_THREAD_MULTIPLE, &provided);
    if (code != MPI_SUCCESS)
        return code;
    *thread_level = (provided >= MPI_THREAD_SERIALIZED) + (provided >= MPI_THREAD_MULTIPLE);
    /* By default, MPI ends the process at an error. */
    code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_dup(MPI_COMM_WORLD, &processes);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_set_errhandler(processes, MPI_ERRORS_RETURN);
    return code;
}

/* Writes the index and the number of the processes, first of all processes of the run and then of
 * those on this host, to the four elements of `places`. */
int cortado_mpi_places(int *places)
{
    MPI_Comm host;
    int code = MPI_Comm_rank(processes, &places[0]);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_size(processes, &places[1]);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_split_type(processes, MPI_COMM_TYPE_SHARED, places[0], MPI_INFO_NULL, &host);
    if (code != MPI_SUCCESS)
        return code;
    code = MPI_Comm_rank(host, &places[2]);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_size(host, &places[3]);
    MPI_Comm_free(&host);
    return code;
}

/* Starts to send `send_length` bytes to the process `peer`, and to receive at most `receive_length`
 * bytes from it. */
int cortado_mpi_start(int peer, const void *send, int send_length, void *receive, int receive_length)
{
    peer_rank = peer;
    receive_buffer = receive;
    receive_capacity = receive_length;
    received_length = -1;
    return MPI_Isend(send, send_length, MPI_BYTE, peer, 0, processes, &send_request);
}

/* Starts to receive the message if it has arrived. The receive starts only when the length is known,
 * because Open MPI 4.1 writes a long message beyond the end of a shorter buffer. */
static int start_receive(void)
{
    int is_there = 0;
    MPI_Message message;
    MPI_Status status;
    void *buffer = receive_buffer;
    int code = MPI_Improbe(peer_rank, 0, processes, &is_there, &message, &status);
    if (code != MPI_SUCCESS || !is_there)
        return code;
    code = MPI_Get_count(&status, MPI_BYTE, &received_length);
    if (code != MPI_SUCCESS)
        return code;
    if (received_length > receive_capacity) {
        buffer = excess = malloc(received_length);
        if (!buffer)
            return MPI_ERR_NO_MEM;
    }
    return MPI_Imrecv(buffer, received_length, MPI_BYTE, &message, &receive_request);
}

/* Continues the exchange. If the exchange is complete, writes the length of the message from the
 * peer to `length`; otherwise, writes -1. A message that exceeds the receive buffer is lost. */
int cortado_mpi_test(int *length)
{
    int is_sent = 0, is_received = 0;
    int code = MPI_Test(&send_request, &is_sent, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS && received_length < 0)
        code = start_receive();
    if (code == MPI_SUCCESS && received_length >= 0)
        code = MPI_Test(&receive_request, &is_received, MPI_STATUS_IGNORE);
    if (is_received) {
        free(excess);
        excess = NULL;
    }
    *length = is_sent && is_received ? received_length : -1;
    return code;
}

/* Writes whether MPI accesses no buffer of a failed exchange any more to `is_idle`. */
int cortado_mpi_is_idle(int *is_idle)
{
    int is_sent = 0, is_received = 0;
    int send_code = MPI_Test(&send_request, &is_sent, MPI_STATUS_IGNORE);
    int receive_code = MPI_Test(&receive_request, &is_received, MPI_STATUS_IGNORE);
    *is_idle = is_sent && is_received;
    return send_code != MPI_SUCCESS ? send_code : receive_code;
}

int cortado_mpi_finalize(void)
{
    int code = MPI_Comm_free(&processes);
    return code == MPI_SUCCESS && is_initializer ? MPI_Finalize() : code;
}

/* Bytes that hold the text of any error and the version of any library. */
int cortado_mpi_text_capacity(void)
{
    return MPI_MAX_LIBRARY_VERSION_STRING > MPI_MAX_ERROR_STRING ? MPI_MAX_LIBRARY_VERSION_STRING
                                                                 : MPI_MAX_ERROR_STRING;
}

/* Writes the description of an error code to `text`, and its length to `length`. */
int cortado_mpi_error_text(int code, char *text, int *length)
{
    return MPI_Error_string(code, text, length);
}

/* Writes the name and the version of the MPI library to `text`, and the length to `length`. */
int cortado_mpi_version_text(char *text, int *length)
{
    return MPI_Get_library_version(text, length);
}

/* Ends all processes of the run. */
int cortado_mpi_abort(int status)
{
    return MPI_Abort(MPI_COMM_WORLD, status);
}
